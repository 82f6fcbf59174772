"""Abuse of the ZMQ ports: whoever knocks, the service goes on, and connections and descriptors come back (B052, B109).
What well-formed peers may say wrong is in test_garbage.py."""

import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from integration import client, zmtp
from integration.cluster import Cluster, wait_until
from integration.conftest import NewCluster
from integration.proc import descriptors
from interop import messages as wire
from interop.engine import Engine

PROCESSES = ("coordinator", "fe0")
NEVER = {"heartbeat_interval_ms": 1800000, "heartbeat_timeout_ms": 3600000, "zmq_handshake_ms": 3600000}

# what our side is never met by, and what it is, at each address
PEERS: dict[str, tuple[bytes, bytes]] = {
    "handshake": (b"PUSH", b"DEALER"),
    "control": (b"SUB", b"DEALER"),
    "input": (b"PAIR", b"DEALER"),
    "output": (b"DEALER", b"PUSH"),
    "engine_publish": (b"PULL", b"XSUB"),
    "engine_output": (b"REQ", b"PUSH"),
    "frontend_publish": (b"DEALER", b"XSUB"),
    "fe0-input": (b"ROUTER2", b"DEALER"),
    "fe0-output": (b"", b"PUSH"),
}

HTTP = b"GET / HTTP/1.1\r\nHost: scan\r\n\r\n"
TLS = bytes.fromhex("16030100a5010000a10303") + bytes(160)
SILENCES = [
    b"",
    b"\xff",
    HTTP,  # looks like the first bytes of an old ZMTP
    b"\x01\x00",
    zmtp.greeting()[:40],
    zmtp.greeting(),
    zmtp.greeting() + zmtp.ready(b"DEALER")[:8],
]


def start(cluster: Cluster) -> Cluster:
    cluster.start()
    cluster.start_fake_engines()
    return cluster.wait_ready("coordinator", "fe0")


def is_served(cluster: Cluster) -> None:
    client.run([client.Job(cluster.port(), [1, 2, 3], 8)])


class Watch:
    """The processes and how many descriptors they have: as many, within OWN, must they have afterwards."""

    OWN = 8  # connections among the processes that libzmq may still make, or make anew, while this is counted

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        is_served(cluster)
        self._most = {name: descriptors(cluster[name].pid) + self.OWN for name in PROCESSES}

    def restored(self) -> None:
        wait_until(lambda: not self._above(), lambda: f"return of descriptors: {self._above()}")
        is_served(self.cluster)

    def _above(self) -> dict[str, tuple[int, int]]:
        counts = {name: (descriptors(self.cluster[name].pid), most) for name, most in self._most.items()}
        return {name: (count, most) for name, (count, most) in counts.items() if count > most}


@pytest.fixture
def connections() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def knock(connections: ExitStack, address: str, data: bytes) -> socket.socket:
    connection = connections.enter_context(zmtp.connect(address))
    connection.sendall(data)
    return connection


def all_closed(sockets: list[socket.socket]) -> None:
    assert [zmtp.is_closed_by_peer(connection) for connection in sockets] == [True] * len(sockets)


# --- peers that never become one ---


def test_hundreds_that_fall_silent_are_closed_and_their_descriptors_return(
    new_cluster: NewCluster, connections: ExitStack
) -> None:
    cluster = start(new_cluster(1, tcp=True, timeouts={"zmq_handshake_ms": 1000}))
    watch = Watch(cluster)
    silent = [
        knock(connections, cluster.address[name], silence)
        for name in PEERS
        for silence in SILENCES
        for _ in range(10)
    ]
    is_served(cluster)
    all_closed(silent)
    watch.restored()


def test_running_out_of_descriptors_is_over_when_the_silent_are_closed(
    new_cluster: NewCluster, connections: ExitStack
) -> None:
    cluster = start(new_cluster(1, tcp=True, timeouts={"zmq_handshake_ms": 1000}))
    watch = Watch(cluster)
    for name in PROCESSES:
        pid = cluster[name].pid
        few = descriptors(pid) + Watch.OWN + 20
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (few, few))
    silent = [
        knock(connections, cluster.address[name], b"\xff") for name in PEERS for _ in range(10)
    ]  # the kernel lets them wait for an accept
    all_closed(silent)
    watch.restored()


REFUSED = {
    "tls": TLS,
    "plain": zmtp.greeting(b"PLAIN"),
    "curve": zmtp.greeting(b"CURVE"),
    "unknown_mechanism": zmtp.greeting(b"HUNTER2"),
    "endless_name": zmtp.greeting() + zmtp.ready(b"X" * 200),
    "no_command": zmtp.greeting() + b"\x04\x05\x04NOPE",
}


@pytest.fixture(scope="module")
def shared_watch(shared_cluster: Cluster) -> Watch:
    return Watch(shared_cluster)


def make_cluster(new_cluster: NewCluster) -> Cluster:
    """One that waits for ever: what it closes, it has refused."""
    return start(new_cluster(1, tcp=True, limits={"max_output_bytes": 65536}, timeouts=NEVER))


@pytest.mark.parametrize("name", REFUSED)
def test_what_speaks_another_protocol_is_refused(
    shared_watch: Watch, connections: ExitStack, name: str
) -> None:
    addresses = shared_watch.cluster.address
    all_closed([knock(connections, addresses[peer], REFUSED[name]) for peer in PEERS])
    shared_watch.restored()


def test_a_peer_of_the_wrong_kind_is_refused(shared_watch: Watch, connections: ExitStack) -> None:
    addresses = shared_watch.cluster.address
    all_closed(
        [
            knock(connections, addresses[name], zmtp.greeting() + zmtp.ready(wrong))
            for name, (wrong, _) in PEERS.items()
        ]
    )
    shared_watch.restored()


# --- peers that become one ---


@pytest.mark.parametrize("flags", [0, 1, zmtp.COMMAND], ids=["message", "first_of_many", "command"])
@pytest.mark.parametrize("size", [2**32, 2**63 - 1, 2**64 - 1])
def test_a_frame_of_absurd_length_is_refused_before_it_comes(
    shared_watch: Watch, connections: ExitStack, size: int, flags: int
) -> None:
    addresses = shared_watch.cluster.address
    all_closed(
        [
            knock(
                connections, addresses[name], zmtp.greeting() + zmtp.ready(kind) + zmtp.header(size, flags)
            )
            for name, (_, kind) in PEERS.items()
        ]
    )
    shared_watch.restored()


def test_a_peer_that_answers_no_heartbeat_is_closed(new_cluster: NewCluster, connections: ExitStack) -> None:
    timeouts = {"heartbeat_interval_ms": 500, "heartbeat_timeout_ms": 3000}
    cluster = start(new_cluster(1, tcp=True, timeouts=timeouts))
    watch = Watch(cluster)
    all_closed(
        [
            knock(connections, cluster.address[name], zmtp.greeting() + zmtp.ready(kind))
            for name, (_, kind) in PEERS.items()
        ]
    )
    watch.restored()


# --- outputs that are too large ---

LIMIT = 65536
SAME = 7  # a token of one byte on the wire


def outputs_of(engine: Engine, size: int, **fields: object) -> tuple[bytes, int]:
    """Outputs of its newest request that have exactly that size, and how many tokens these are."""

    def encoded(count: int) -> bytes:
        output = engine.output(engine.added[-1], [SAME] * count, **fields)
        return wire.encode(wire.EngineCoreOutputs(engine.rank, [output], timestamp=1.0))

    engine.output(engine.added[-1], [])  # the first one is longer
    count = size - len(encoded(1000)) + 1000
    frame = encoded(count)
    assert len(frame) == size
    return frame, count


@pytest.fixture
def limited(new_cluster: NewCluster) -> tuple[Cluster, list[Engine]]:
    cluster = new_cluster(2, limits={"max_output_bytes": LIMIT, "max_stream_bytes": 1 << 24}).start()
    engines = cluster.start_engines(withhold=True, max_model_len=100000)
    cluster.wait_ready()
    return cluster, engines


def ask(cluster: Cluster, rank: int, max_tokens: int = 70000) -> client.Connection:
    body = client.generate_body([1, 2, 3], max_tokens, stream=True)
    return client.open_post(cluster.port(), body, [("X-data-parallel-rank", str(rank))])


def tokens_of(answer: client.Answer) -> list[int]:
    found: list[int] = []
    for event in answer.events():
        if event != client.DONE:
            found += event["choices"][0]["token_ids"]
    return found


def test_an_output_of_just_the_limit_fits(limited: tuple[Cluster, list[Engine]]) -> None:
    cluster, engines = limited
    with ask(cluster, 0) as connection:
        engines[0].wait_added()
        frame, count = outputs_of(engines[0], LIMIT, finish_reason=wire.FINISH_STOP)
        engines[0].send_raw("output:1", [frame])
        answer = connection.whole()
        assert answer.status == 200, answer.body
        assert tokens_of(answer) == [SAME] * count


def test_an_output_above_the_limit_costs_its_sender_the_connection_only(
    limited: tuple[Cluster, list[Engine]],
) -> None:
    cluster, engines = limited
    with ask(cluster, 0) as broken, ask(cluster, 1) as other:
        for engine in engines:
            engine.wait_added()
            frame, _ = outputs_of(engine, 1000)
            engine.send_raw("output:1", [frame])
        assert broken.event()["choices"][0]["token_ids"] and other.event()["choices"][0]["token_ids"]
        engines[0].send_raw("output:1", [outputs_of(engines[0], LIMIT + 1)[0]])
        event = broken.event()
        assert event["error"]["code"] == "request_stream_closed"
        engines[0].wait_aborted(engines[0].added[0].id)
        frame, count = outputs_of(engines[1], LIMIT, finish_reason=wire.FINISH_STOP)
        engines[1].send_raw("output:1", [frame])
        assert tokens_of(other.whole())[-count:] == [SAME] * count
    for engine in engines:
        engine.withhold(False)
    cluster.wait_ready()
    headers = [[("X-data-parallel-rank", str(rank))] for rank in (0, 1)]
    client.run([client.Job(cluster.port(), [1, 2, 3], 8, headers=pinned) for pinned in headers])
    cluster.wait_idle()
