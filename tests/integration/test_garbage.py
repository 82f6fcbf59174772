"""Whatever arrives on a bound socket: it is counted by cause, the process lives, and real traffic does not notice (B052)."""

import random
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import zmq

from integration import client
from integration.cluster import Cluster, rank_states
from integration.conftest import NewCluster
from integration.peer import Peer
from interop import messages as wire

ABSENT = b"\x02\x00"  # a rank of the config for which no engine is started: a garbage sender must not take a live one's id
HELLO = wire.encode({"status": "HELLO", "local": False, "headless": True})
REGISTRATION = wire.encode(wire.registration(2, 4096))
OUTPUTS = wire.encode(wire.EngineCoreOutputs(0, [wire.EngineCoreOutput("r-00000001", [1, 2])]))
STATS = wire.encode(wire.EngineCoreOutputs(0, scheduler_stats=wire.SchedulerStats(num_running_reqs=1)))


def junk(size: int) -> bytes:
    """The same bytes in every run. The first one can begin neither a subscription nor a whole message."""
    return b"\xc1" + random.Random(size).randbytes(size - 1)


GENERAL: list[list[bytes]] = [
    [junk(1)],
    [junk(10)],
    [junk(5000)],
    [b""],
    [b"\x05"],
    [wire.encode("text")],
    [wire.encode(True)],
    [wire.encode(["unknown"])],
    [wire.encode([[[[]]]])],
    [b"\xdd\x0f\xff\xff\xff"],  # an array of 268 million
    [b"\xdf\xff\xff\xff\xff"],  # a map of 4 billion
    [b"\xdb\xff\xff\xff\xff"],
    [b"\x91" * 4000],
    [b"\x81" * 4000],
    [b"x"] * 50,
    [b""] * 50,
]
HANDSHAKE = [
    [HELLO[:-1]],
    [HELLO, HELLO],
    [HELLO + b"\xc0"],
    [wire.encode({"status": 1})],
    [wire.encode({1: 2})],
]
INPUT = [
    [REGISTRATION[:-3]],
    [REGISTRATION, REGISTRATION],
    [wire.encode({"max_model_len": "many"})],
    [wire.encode({"max_model_len": 2**64 - 1})],
    [wire.encode({"vllm_version": b"\xff"})],
]
OUTPUT = [
    [OUTPUTS[:-1]],
    [OUTPUTS + b"\xc0"],
    [wire.encode({"engine_index": 0})],
    [wire.encode(["0"])],
    [wire.encode([0, {}])],
    [wire.encode([0, [], 7])],
    [wire.encode([-1, []])],
    [wire.encode([2**63, []])],
    [wire.encode([0, [], {"num_running_reqs": "x"}])],
    [wire.encode([0, [], None, "now"])],
    [wire.encode([0, [], None, 0.0, 7])],
    [wire.encode([0, [], None, 0.0, None, 7])],
    [wire.encode([0, [["r", [1]]], None, 0.0, [1, None, None]])],  # outputs with a utility output
    [wire.encode([0, [["r", [1]]], None, 0.0, None, None, 1])],  # outputs with a wave
]
NOTICES = [[wire.encode([0])], [wire.encode([0, 1, 2])], [wire.encode(["0", 1])], [wire.encode([0, None])]]
CONTROL = [
    [wire.encode(["JOIN"])],
    [wire.encode(["JOIN", 1, "x", []])],
    [wire.encode(["BEAT", 7])],
    [wire.encode(["BEAT", [[0]]])],
    [wire.encode(["RANKS", []])],
]

# (process, name in the config and in the counters, address, kind of the peer, its identity, messages)
SOCKETS: dict[str, tuple[str, str, str, int, bytes | None, list[list[bytes]]]] = {
    "handshake": ("coordinator", "handshake", "handshake", zmq.DEALER, ABSENT, GENERAL + HANDSHAKE),
    "handshake_unknown_id": (
        "coordinator",
        "handshake",
        "handshake",
        zmq.DEALER,
        b"\x99\x99",
        GENERAL + [[HELLO]],
    ),
    "handshake_no_id": ("coordinator", "handshake", "handshake", zmq.DEALER, None, GENERAL + [[HELLO]]),
    "slot_input": ("coordinator", "input", "input", zmq.DEALER, ABSENT, GENERAL + INPUT),
    "slot_input_no_id": ("coordinator", "input", "input", zmq.DEALER, None, GENERAL + [[REGISTRATION]]),
    "slot_output": ("coordinator", "output", "output", zmq.PUSH, None, GENERAL + OUTPUT),
    "engine_publish": ("coordinator", "engine_publish", "engine_publish", zmq.XSUB, None, GENERAL),
    "engine_output": (
        "coordinator",
        "engine_output",
        "engine_output",
        zmq.PUSH,
        None,
        GENERAL + OUTPUT + [[STATS, STATS]],
    ),
    "frontend_publish": (
        "coordinator",
        "frontend_publish",
        "frontend_publish",
        zmq.XSUB,
        None,
        GENERAL + NOTICES,
    ),
    "control": ("coordinator", "control", "control", zmq.DEALER, None, GENERAL + CONTROL),
    "control_unknown_name": ("coordinator", "control", "control", zmq.DEALER, b"nobody", GENERAL + CONTROL),
    "control_of_a_frontend_that_is_down": (
        "coordinator",
        "control",
        "control",
        zmq.DEALER,
        b"down",
        GENERAL + CONTROL,
    ),
    "input": ("fe0", "input", "fe0-input", zmq.DEALER, ABSENT, GENERAL + INPUT),
    "input_unknown_id": ("fe0", "input", "fe0-input", zmq.DEALER, b"\x99\x99", GENERAL + [[REGISTRATION]]),
    "input_no_id": ("fe0", "input", "fe0-input", zmq.DEALER, None, GENERAL + [[REGISTRATION]]),
    "output": ("fe0", "output", "fe0-output", zmq.PUSH, None, GENERAL + OUTPUT),
}


def make_cluster(new_cluster: NewCluster) -> Cluster:
    cluster = new_cluster(3, {"fe0": "0-2", "down": "0-2"}, tcp=True)
    cluster.start_coordinator()
    cluster.start_frontend("fe0")
    cluster.start_fake_engines("0-1", "--step-ms", "1")

    def two_ready(status: dict[str, Any]) -> bool:
        states = rank_states(status)
        return states[0] == states[1] == "ready"

    cluster.wait_status("fe0", two_ready, "two ranks ready")
    return cluster


class Traffic(threading.Thread):
    """Real requests, as long as the garbage comes."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self.port = port
        self.enough = threading.Event()
        self.error: BaseException | None = None
        self.rounds = 0

    def run(self) -> None:
        try:
            while self.rounds == 0 or not self.enough.is_set():
                jobs = [client.Job(self.port, [self.rounds, i], 16, stream=i % 2 == 0) for i in range(10)]
                client.run(jobs, timeout=30)
                self.rounds += 1
        except BaseException as error:
            self.error = error


@pytest.fixture
def traffic(shared_cluster: Cluster) -> Iterator[None]:
    traffic = Traffic(shared_cluster.port("fe0"))
    traffic.start()
    yield
    traffic.enough.set()
    traffic.join(60)
    if traffic.error:
        raise traffic.error
    assert traffic.rounds > 0
    shared_cluster.wait_idle("fe0")


@pytest.mark.usefixtures("traffic")
@pytest.mark.parametrize("name", SOCKETS)
def test_garbage_is_counted_and_nothing_else_happens(shared_cluster: Cluster, name: str) -> None:
    process, counter, address, kind, identity, messages = SOCKETS[name]
    if identity == ABSENT and counter == "input":
        # an empty frame is the registration of an old engine, so it is not garbage there
        messages = [frames for frames in messages if frames != [b""]]

    def total() -> int:
        return sum(shared_cluster.faults(process, counter).values())

    with Peer(kind, shared_cluster.address[address], identity) as peer:
        for frames in messages:  # one by one, so that the one that is not counted is named
            before = total()
            peer.send(*frames)
            shared_cluster.wait_status(
                process,
                lambda status: sum(status["faults"].get(counter, {}).values()) > before,
                f"fault after {b' | '.join(frames)[:60]!r}",
            )
    assert shared_cluster[process].alive


def raw(port: int, data: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port), 5) as connection:
        connection.settimeout(1)
        try:
            connection.sendall(data)
            connection.recv(4096)
        except OSError:
            pass  # being cut off is a fair answer


SCANS: dict[str, bytes] = {
    "http": b"GET / HTTP/1.0\r\n\r\n",
    "tls": bytes.fromhex("16030100a5010000a10303") + bytes(160),
    "ssh": b"SSH-2.0-scan\r\n",
    "a_zmq_greeting_cut_short": b"\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f",
    "a_zmq_greeting_of_an_old_version": b"\x01\x00",
    "noise": junk(3000),
    "nothing": b"",
}


@pytest.mark.usefixtures("traffic")
@pytest.mark.parametrize("scan", SCANS)
def test_a_port_scanner_is_harmless(shared_cluster: Cluster, scan: str) -> None:
    down = {shared_cluster.address[name] for name in ("down-input", "down-output")}
    ports = [
        int(address.rpartition(":")[2]) for address in shared_cluster.address.values() if address not in down
    ]
    ports += [shared_cluster.port("fe0"), shared_cluster.port("coordinator")]
    scanners = [threading.Thread(target=raw, args=(port, SCANS[scan])) for port in ports]
    for scanner in scanners:
        scanner.start()
    for scanner in scanners:
        scanner.join(10)
    for process in ("fe0", "coordinator"):
        assert client.get(shared_cluster.port(process), "/livez").status == 200


WRONG_KINDS = {
    "a_subscriber_on_an_input": (zmq.SUB, "fe0-input"),
    "a_pair_on_the_handshake": (zmq.PAIR, "handshake"),
    "a_requester_on_an_output": (zmq.REQ, "fe0-output"),
    "a_dealer_on_the_publisher": (zmq.DEALER, "engine_publish"),
}


@pytest.mark.usefixtures("traffic")
@pytest.mark.parametrize("name", WRONG_KINDS)
def test_a_socket_of_the_wrong_kind_is_harmless(shared_cluster: Cluster, name: str) -> None:
    kind, address = WRONG_KINDS[name]
    with Peer(kind, shared_cluster.address[address]) as peer:
        if kind != zmq.SUB:
            peer.offer(HELLO)  # it waits in the peer, until ZMTP refuses the connection and there is nobody
        assert peer.receive(0.1) is None
        for process in ("fe0", "coordinator"):
            assert client.get(shared_cluster.port(process), "/livez").status == 200
