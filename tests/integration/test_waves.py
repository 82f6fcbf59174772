"""Lockstep groups: who wakes whom, at which wave (protocol.md 7, design.md 4). Scripted engines, so that every
message can be seen; test_lockstep.py has the groups that really step."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import msgspec
import pytest
import zmq

from integration import client
from integration.cluster import Cluster, rank_states, wait_until
from integration.conftest import NewCluster
from integration.peer import Peer
from interop.engine import Engine

START = b"\x02"


def group(new_cluster: NewCluster, ranks: int = 2, **options: object) -> Cluster:
    cluster = new_cluster(ranks, lockstep=True, **options).start()
    for rank in range(ranks):
        cluster.start_engine(rank, config_hash="aaaa", withhold=True)
    return cluster.wait_ready()


def starts(engine: Engine) -> list[list[object]]:
    """The payloads of every START_DP_WAVE broadcast that this engine got."""
    return [msgspec.msgpack.decode(r.frames[1]) for r in engine.received if r.frames[0] == START and len(r.frames) == 2]


def waits_for_start(cluster: Cluster, wave: int) -> None:
    for engine in cluster.engines:
        engine.wait_until(lambda: [wave, None] in starts(engine), f"START_DP_WAVE [{wave}, nil]")


def wave_state(cluster: Cluster) -> tuple[int, bool, bool]:
    status = cluster.status("coordinator")
    return status["wave"], status["engines_running"], status["observed_running"]


def report(engine: Engine, **fields: object) -> None:
    engine.send_raw("stats", [engine._envelope([], fields)])


def complete(cluster: Cluster, wave: int) -> None:
    report(cluster.engines[0], wave_complete=wave)
    wait_until(lambda: wave_state(cluster)[:2] == (wave + 1, False), f"wave {wave + 1}, paused")


@contextlib.contextmanager
def request(cluster: Cluster, rank: int, name: str = "fe0") -> Iterator[object]:
    count = len(cluster.engines[rank].added)
    body = client.generate_body([1, 2, 3], 4)
    with client.open_post(cluster.port(name), body, [("X-data-parallel-rank", str(rank))]) as connection:
        yield cluster.engines[rank].wait_added(count + 1)
    assert connection


def test_the_first_request_of_a_cold_group_wakes_every_rank(new_cluster: NewCluster) -> None:
    """B015, with nil for the excluded rank."""
    cluster = group(new_cluster, 16)
    assert wave_state(cluster) == (0, False, False)
    with request(cluster, 8) as added:
        assert added.add.current_wave == 0
        waits_for_start(cluster, 0)


def test_a_notice_wakes_at_the_current_wave_whatever_wave_it_knows(new_cluster: NewCluster) -> None:
    """B012."""
    cluster = group(new_cluster)
    for wave in range(3):
        complete(cluster, wave)
    with Peer(zmq.XSUB, cluster.address["frontend_publish"]) as peer:
        peer.send(msgspec.msgpack.encode([1, 2]))
        waits_for_start(cluster, 3)
        assert all(payload == [3, None] for engine in cluster.engines for payload in starts(engine))
        complete(cluster, 3)
        before = [len(starts(engine)) for engine in cluster.engines]
        peer.send(msgspec.msgpack.encode([1, 4]))
        waits_for_start(cluster, 4)
        assert [len(starts(engine)) for engine in cluster.engines] > before


def test_a_notice_carries_the_rank_as_a_number(new_cluster: NewCluster) -> None:
    """B033: a frontend of ours against somebody else's publish socket."""
    cluster = group(new_cluster, 2)
    complete(cluster, 0)
    cluster.wait_status("fe0", lambda status: status["wave"] == 1, "wave 1")
    with request(cluster, 1) as added:
        assert added.add.current_wave == 1
        waits_for_start(cluster, 1)
    assert not cluster.faults("coordinator", "frontend_publish")


def test_running_is_repeated_and_ends_with_wave_complete(new_cluster: NewCluster) -> None:
    cluster = group(new_cluster, timeouts={"wave_repeat_ms": 50})
    with request(cluster, 0):
        engine = cluster.engines[1]
        engine.wait_until(lambda: len(starts(engine)) >= 5, "five repeats")
    complete(cluster, 0)
    counts = [len(starts(engine)) for engine in cluster.engines]
    with request(cluster, 0):
        waits_for_start(cluster, 1)
    for engine, count in zip(cluster.engines, counts):
        assert all(payload == [0, None] for payload in starts(engine)[:count])


def test_several_requests_of_one_pause_announce_once(new_cluster: NewCluster) -> None:
    cluster = group(new_cluster, timeouts={"wave_repeat_ms": 3600000})
    with request(cluster, 0), request(cluster, 1), request(cluster, 0):
        waits_for_start(cluster, 0)
        assert [starts(engine) for engine in cluster.engines] == [[[0, None]], [[0, None]]]


def test_a_wake_is_a_prediction_until_an_engine_reports(new_cluster: NewCluster) -> None:
    """B013: nobody obeys, as if a pause call held every rank."""
    cluster = group(new_cluster)
    with request(cluster, 0):
        waits_for_start(cluster, 0)
        assert wave_state(cluster) == (0, True, False)
        cluster.engines[0].send_stats(num_running_reqs=1, current_wave=0, step_counter=1)
        wait_until(lambda: wave_state(cluster) == (0, True, True), "the observation")
    complete(cluster, 0)


def test_work_in_a_paused_group_is_evidence_and_wakes_it(new_cluster: NewCluster) -> None:
    cluster = group(new_cluster)
    cluster.engines[1].send_stats(num_waiting_reqs=1, current_wave=0, step_counter=0)
    waits_for_start(cluster, 0)
    assert wave_state(cluster) == (0, True, False)


@pytest.mark.parametrize("wave", [0, 1])
def test_an_old_wave_changes_nothing(new_cluster: NewCluster, wave: int) -> None:
    """B018."""
    cluster = group(new_cluster)
    for done in range(2):
        complete(cluster, done)
    report(cluster.engines[1], start_wave=wave)
    report(cluster.engines[1], wave_complete=wave)
    cluster.engines[1].send_stats(num_running_reqs=1, current_wave=wave, step_counter=1)
    cluster.wait_status("coordinator", lambda status: status["counters"]["reports"] >= 5, "the reports")
    assert wave_state(cluster) == (2, False, False)


def test_a_stale_start_wave_of_a_rank_moves_the_group_forward(new_cluster: NewCluster) -> None:
    cluster = group(new_cluster)
    report(cluster.engines[1], start_wave=7)
    waits_for_start(cluster, 7)
    cluster.wait_status("fe0", lambda status: (status["wave"], status["engines_running"]) == (7, True), "wave 7")


def test_a_restarted_coordinator_remembers_the_wave_and_assumes_running(new_cluster: NewCluster) -> None:
    cluster = group(new_cluster)
    for wave in range(3):
        complete(cluster, wave)
    cluster["coordinator"].kill()
    cluster.start_coordinator()
    waits_for_start(cluster, 3)
    cluster.wait_ready()
    assert wave_state(cluster)[:2] == (3, True)
    report(cluster.engines[0], wave_complete=3)  # may be old: the group is woken once more
    waits_for_start(cluster, 4)
    complete(cluster, 4)


def test_a_lost_rank_fails_the_whole_group_fast(new_cluster: NewCluster) -> None:
    """B050, B047: its collectives would hang. fe1 does not even serve the rank that is lost."""
    cluster = group(new_cluster, 2, frontends={"fe0": "0-1", "fe1": "0"})
    body = client.generate_body([1, 2, 3], 4)
    with client.open_post(cluster.port("fe1"), body) as other:
        cluster.engines[0].wait_added(1)
        cluster.engines[1].close()
        client.error_of(other.whole(), 503, "dispatcher_closed")
    for name in ("fe0", "fe1"):
        client.error_of(client.post(cluster.port(name), body), 503, "no_rank_ready")
    cluster.engines.pop(1)


def test_without_a_coordinator_a_frontend_of_all_ranks_wakes_the_group_once(new_cluster: NewCluster) -> None:
    cluster = group(new_cluster, 2, frontends={"fe0": "0-1", "fe1": "0"})
    cluster["coordinator"].kill()
    for name in ("fe0", "fe1"):
        cluster.wait_status(name, lambda status: not status["coordinator"]["joined"], "silence")
    error = client.error_of(client.post(cluster.port("fe1"), client.generate_body([1], 4)), 503, "control_closed")
    assert "silent" in error["message"]
    with request(cluster, 0):
        for engine in cluster.engines:
            engine.wait_until(
                lambda: any(START in r.frames and r.frames[-1] == msgspec.msgpack.encode([0, None]) for r in engine.received),
                "START_DP_WAVE on its input",
            )
    client.error_of(client.post(cluster.port("fe0"), client.generate_body([1], 4)), 503, "control_closed")
    assert client.get(cluster.port("fe0"), "/readyz").status == 503
    cluster.start_coordinator()
    wait_until(lambda: client.get(cluster.port("fe0"), "/readyz").status == 200, "readiness")
    with request(cluster, 1):
        waits_for_start(cluster, 0)


def test_a_request_that_nobody_may_have_heard_of_ends_when_the_coordinator_falls_silent(
    new_cluster: NewCluster,
) -> None:
    cluster = group(new_cluster, 2, frontends={"fe0": "0-1", "fe1": "0"})
    cluster["coordinator"].signal(19)  # SIGSTOP: the notice is sent and not read
    with client.open_post(cluster.port("fe1"), client.generate_body([1, 2], 4)) as connection:
        added = cluster.engines[0].wait_added(1)
        client.error_of(connection.whole(), 503, "control_closed")
    cluster.engines[0].wait_aborted(added.id)
    cluster["coordinator"].signal(18)
    assert rank_states(cluster.status("fe1")) == {0: "ready"}


def test_independent_ranks_have_no_waves(new_cluster: NewCluster) -> None:
    """B017."""
    cluster = new_cluster(2).start()
    cluster.start_engines()
    cluster.wait_ready()
    client.run([client.Job(cluster.port(), [i], 4) for i in range(100)])
    for engine in cluster.engines:
        assert starts(engine) == [] and all(added.add.current_wave == 0 for added in engine.added)
    report(cluster.engines[0], start_wave=3)
    report(cluster.engines[0], wave_complete=3)
    cluster.wait_fault("coordinator", "engine_output", "UnexpectedCoordinatorOutput", 2)
    assert wave_state(cluster) == (0, False, False)
