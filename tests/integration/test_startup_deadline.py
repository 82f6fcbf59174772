"""Ranks that are late: who is named, when, and what becomes of the coordinator (B001, B002, B004, B055)."""

import re
import socket
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager

import zmq

from integration import client
from integration.cluster import Cluster, Process, rank_row, rank_states
from integration.conftest import NewCluster
from integration.peer import Peer
from interop import messages as wire

HELLO = wire.encode({"status": "HELLO", "local": False, "headless": True})
STATS = wire.encode(wire.EngineCoreOutputs(0, scheduler_stats=wire.SchedulerStats(num_running_reqs=7)))
ENOUGH_MS = 600_000  # a limit that no test reaches


def serves(cluster: Cluster, name: str = "fe0") -> None:
    client.run([client.Job(cluster.port(name), [i, i + 1], 4) for i in range(8)])


def wait_state(cluster: Cluster, rank: int, state: str) -> None:
    cluster.wait_status(
        "coordinator", lambda status: rank_states(status)[rank] == state, f"rank {rank} in {state}"
    )


def errors(coordinator: Process) -> list[str]:
    return [line for line in coordinator.lines if "Timeout: " in line]


# --- the limit ---


def test_ranks_that_are_late_are_named_with_their_phase_and_serve_when_they_come(
    new_cluster: NewCluster,
) -> None:
    cluster = new_cluster(6, timeouts={"startup_ms": 4000})
    began = time.monotonic()
    coordinator = cluster.start_coordinator()
    cluster.start_frontend()
    cluster.start_engine(0)
    loading = cluster.start_engine(1, hold=["registration"])
    registered = cluster.start_engine(2, hold=["ready"])
    doomed = cluster.start_fake_engines("3", "--load-ms", "600000")
    wait_state(cluster, 3, "hello")
    doomed.kill()
    for rank, state in {0: "ready", 1: "hello", 2: "hello", 3: "lost"}.items():
        wait_state(cluster, rank, state)

    coordinator.wait_log(r"not all ranks have started in time missing=5 limit=4000 ms.*timeouts\.startup_ms")
    assert time.monotonic() - began >= 4
    said = errors(coordinator)
    assert len(said) == 4, said
    for line, wanted in zip(
        said,
        (
            r"HandshakeTimeout: .* waiting for HELLO of ranks \[4-5\] after \d+ s; nobody has dialled",
            r"HandshakeTimeout: .* waiting for HELLO of ranks \[3\] after \d+ s; their engines were lost",
            r"InputRegistrationTimeout: .* from ranks \[1\] after \d+ s; their HELLO came \d+ s ago",
            r"HandshakeTimeout: .* waiting for READY of ranks \[2\] after \d+ s; they have registered",
        ),
        strict=True,
    ):
        assert re.search(wanted, line), line
    startup = cluster.status("coordinator")["startup"]
    assert (startup["missing"], startup["limit_ms"]) == (5, 4000)
    assert "ranks [4-5]" in startup["timeouts"][0] and len(startup["timeouts"]) == 4

    loading.release("registration")
    registered.release("ready")
    for rank in (3, 4, 5):
        cluster.start_fake_engines(str(rank))
    cluster.wait_ready()
    serves(cluster)
    coordinator.wait_log("every rank has started")
    status = cluster.status("coordinator")
    assert status["startup"] == {"missing": 0, "limit_ms": 4000, "timeouts": []}
    assert len(errors(coordinator)) == 4  # said once


def test_a_slow_load_within_the_limit_is_no_error(new_cluster: NewCluster) -> None:
    cluster = new_cluster(2, timeouts={"startup_ms": ENOUGH_MS, "on_startup_timeout": "exit"}).start()
    cluster.start_fake_engines("0-1", "--load-ms", "500")
    wait_state(cluster, 1, "hello")
    assert cluster.status("coordinator")["startup"] == {
        "missing": 2,
        "limit_ms": ENOUGH_MS,
        "timeouts": [],
    }
    cluster.wait_ready()
    serves(cluster)
    assert not errors(cluster["coordinator"])


def test_the_coordinator_gives_up_where_it_is_told_to(new_cluster: NewCluster) -> None:
    cluster = new_cluster(3, timeouts={"startup_ms": 200, "on_startup_timeout": "exit"})
    for _ in range(2):  # the second one finds every address free
        coordinator = cluster.start_coordinator()
        coordinator.may_end_with = {1}
        coordinator.wait_log(r"HandshakeTimeout: .* waiting for HELLO of ranks \[0-2\]")
        coordinator.wait_log("limit=200 ms; giving up")
        assert coordinator.wait_exit() == 1


def test_a_coordinator_restarted_beside_running_ranks_does_not_give_up(new_cluster: NewCluster) -> None:
    cluster = new_cluster(4, timeouts={"startup_ms": ENOUGH_MS, "on_startup_timeout": "exit"}).start()
    engines = [cluster.start_fake_engines(str(rank)) for rank in range(3)]
    cluster.wait_status("fe0", lambda status: list(rank_states(status).values())[:3] == ["ready"] * 3, "three ranks")
    engines[2].kill()
    cluster.wait_status("fe0", lambda status: rank_states(status)[2] == "lost", "the loss")
    cluster["coordinator"].kill()
    text = cluster.config.read_text()
    cluster.config.write_text(text.replace(f"startup_ms = {ENOUGH_MS}", "startup_ms = 4000"))
    coordinator = cluster.start_coordinator()
    coordinator.wait_log("missing=1 limit=4000 ms; going on")
    assert len(errors(coordinator)) == 1
    assert re.search(r"HELLO of ranks \[3\]", errors(coordinator)[0])  # 2 was lost, which is no matter of the start
    serves(cluster)
    assert coordinator.alive


# --- the gate ---


@contextmanager
def raw_subscriber(address: str) -> Iterator[socket.socket]:
    """A SUB without the library, which would keep a byte that begins no subscription, and a 00 that ends none."""
    greeting = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)
    properties = b"\x0bSocket-Type" + (3).to_bytes(4, "big") + b"SUB"
    command = b"\x05READY" + properties
    host, _, port = address.removeprefix("tcp://").rpartition(":")
    with socket.create_connection((host, int(port)), 5) as connection:
        connection.sendall(greeting + b"\x04" + bytes([len(command)]) + command)
        answer = b""
        while b"XPUB" not in answer:  # what is sent before it is not heard
            part = connection.recv(256)
            assert part, "the publisher hung up"
            answer += part
        yield connection


def test_a_group_is_held_for_the_rank_that_is_missing_and_released_once(new_cluster: NewCluster) -> None:
    cluster = new_cluster(4, tcp=True, lockstep=True, timeouts={"startup_ms": 3000, "waiting_log_ms": 500})
    coordinator = cluster.start_coordinator()
    engines = [cluster.start_engine(rank, config_hash="aaaa") for rank in range(3)]
    coordinator.wait_log("waiting: 0 registered, .* 3 not seen")
    cluster.wait_status(
        "coordinator", lambda status: status["counters"]["engine_subscriptions"] == 3, "three subscriptions"
    )
    with raw_subscriber(cluster.address["engine_publish"]) as stray:
        for byte in (b"\x00", b"\x05"):
            stray.sendall(b"\x00\x01" + byte)
        cluster.wait_fault("coordinator", "engine_publish", "Decode")
        coordinator.wait_log("not all ranks have started in time missing=4 limit=3000 ms; going on")
    said = errors(coordinator)
    assert len(said) == 2, said
    assert re.search(r"waiting for HELLO of ranks \[3\]", said[0])
    assert re.search(r"waiting for READY of ranks \[0-2\] .* wait at the startup gate for the other ranks", said[1])
    status = cluster.status("coordinator")
    assert status["counters"]["engine_subscriptions"] == 3
    assert status["faults"]["engine_publish"] == {"Decode": 1}

    engines.append(cluster.start_engine(3, config_hash="aaaa"))
    for engine in engines:
        engine.wait_serving()
        assert sum(record.frames == [b"READY"] for record in engine.received) == 1
    coordinator.wait_log("every rank has started")


# --- what goes on meanwhile ---


def test_init_is_answered_at_once_while_another_rank_loads(new_cluster: NewCluster) -> None:
    cluster = new_cluster(12)
    cluster.start_coordinator()
    cluster.start_fake_engines("0", "--load-ms", "600000")
    wait_state(cluster, 0, "hello")
    latencies = []
    for rank in range(1, 12):
        with Peer(zmq.DEALER, cluster.address["handshake"], rank.to_bytes(2, "little")) as engine:
            began = time.monotonic()
            engine.send(HELLO)
            assert engine.receive()
            latencies.append(time.monotonic() - began)
    assert statistics.median(latencies) < 1.0  # with the connecting; it is about 1 ms on an idle machine
    assert rank_states(cluster.status("coordinator"))[0] == "hello"


def test_an_engine_that_dies_while_it_loads_is_lost_and_its_successor_serves(new_cluster: NewCluster) -> None:
    cluster = new_cluster(2).start()
    loading = cluster.start_fake_engines("0", "--load-ms", "600000")
    other = cluster.start_engine(1, hold=["registration"])
    for rank in (0, 1):
        wait_state(cluster, rank, "hello")
    loading.kill()
    cluster["coordinator"].wait_log("engine left while it loaded rank=0")
    wait_state(cluster, 0, "lost")
    assert rank_states(cluster.status("coordinator"))[1] == "hello"
    cluster.start_fake_engines("0")
    other.release("registration")
    cluster.wait_ready()
    serves(cluster)


def test_a_frontend_that_dies_while_engines_load_is_seen_and_its_ranks_go_on(new_cluster: NewCluster) -> None:
    cluster = new_cluster(2, {"fe0": "0-1", "fe1": "0-1"}).start()
    engines = cluster.start_engines(hold=["registration"])
    coordinator = cluster["coordinator"]

    def connected(names: set[str]) -> None:
        cluster.wait_status(
            "coordinator",
            lambda status: {row["name"] for row in status["frontends"] if row["connected"]} == names,
            f"connection of {names}",
        )

    connected({"fe0", "fe1"})
    for engine in engines:
        engine.wait_until(lambda engine=engine: engine.phase == "init", "INIT")
    cluster["fe1"].kill()
    connected({"fe0"})
    coordinator.wait_log(r"frontend gone name=fe1 silent_ms=\d+")
    assert set(rank_states(cluster.status("coordinator")).values()) == {"hello"}
    for engine in engines:
        engine.release("registration")
    cluster.wait_ready("fe0")
    serves(cluster, "fe0")
    cluster.start_frontend("fe1")
    connected({"fe0", "fe1"})
    cluster.wait_ready("fe1")
    serves(cluster, "fe1")
    assert sum("frontend joined name=fe1" in line for line in coordinator.lines) == 2
    assert not any("frontend gone name=fe0" in line for line in coordinator.lines)


def test_what_an_engine_of_an_earlier_run_reported_is_not_its_successors(new_cluster: NewCluster) -> None:
    cluster = new_cluster(1)
    cluster.start_coordinator()

    def running(count: int | None) -> None:
        cluster.wait_status(
            "coordinator", lambda status: rank_row(status, 0)["running"] == count, f"{count} running"
        )

    with Peer(zmq.PUSH, cluster.address["engine_output"]) as earlier:
        earlier.send(STATS)
        running(7)
    cluster.start_engine(0, hold=["registration"])
    wait_state(cluster, 0, "hello")
    running(None)
