"""An engine that is connected and says nothing (B048), and a coordinator that is gone (B062)."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from integration import client
from integration.cluster import Cluster, Process, rank_row, rank_states
from integration.conftest import NewCluster
from interop import messages as wire
from interop.engine import Engine

LIMIT_MS = 1000
PIN = "X-data-parallel-rank"
# a stopped process answers no heartbeat either: that is a lost rank, and not what is tested here
NO_HEARTBEATS = {"heartbeat_interval_ms": 60000, "heartbeat_timeout_ms": 120000}
TIMEOUTS = {"rank_silence_ms": LIMIT_MS} | NO_HEARTBEATS


@contextmanager
def stopped(process: Process) -> Iterator[None]:
    process.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.signal(signal.SIGCONT)


def pinned(cluster: Cluster, rank: int, max_tokens: int = 4, stream: bool = False) -> client.Connection:
    body = client.generate_body([1, 2, 3], max_tokens, stream=stream, sampling={"ignore_eos": True})
    return client.open_post(cluster.port(), body, [(PIN, str(rank))])


def serves(cluster: Cluster, rank: int) -> None:
    client.run([client.Job(cluster.port(), [1, 2, 3], 4, headers=[(PIN, str(rank))])])


def wait_state(cluster: Cluster, rank: int, state: str) -> dict[str, Any]:
    return cluster.wait_status("fe0", lambda status: rank_states(status)[rank] == state, f"{state} of rank {rank}")


def questions(engine: Engine) -> list[wire.UtilityCall]:
    return [record.message for record in engine.received if isinstance(record.message, wire.UtilityCall)]


def is_silent(error: dict[str, Any]) -> bool:
    return f"nothing has come from it for {LIMIT_MS} ms" in error["message"]


def test_a_wedged_engine_is_given_up_and_taken_back_when_it_wakes(new_cluster: NewCluster) -> None:
    cluster = new_cluster(2, timeouts=TIMEOUTS).start()
    engines = [cluster.start_fake_engines(str(rank), "--step-ms", "20") for rank in (0, 1)]
    cluster.wait_ready()
    with pinned(cluster, 0, 2000, stream=True) as stream:
        assert stream.event()["choices"]
        began = time.monotonic()
        with stopped(engines[0]):
            *_, error, done = stream.events()
            assert error["error"]["code"] == "dispatcher_closed" and is_silent(error["error"])
            assert done == client.DONE and time.monotonic() - began > 0.5 * LIMIT_MS / 1000
            assert rank_states(wait_state(cluster, 0, "silent"))[1] == "ready"
            refused = client.error_of(pinned(cluster, 0).whole(), 503, "no_rank_ready")
            assert "rank 0: silent for" in refused["message"]
            for _ in range(4):  # the other one serves, idle or not, and is never taken for silent
                client.run([client.Job(cluster.port(), [7, 8], 4)])
            assert client.get(cluster.port(), "/readyz").status == 200
            assert cluster.status()["ranks"][1]["state"] == "ready"
        wait_state(cluster, 0, "ready")
    serves(cluster, 0)
    cluster.wait_idle()
    # what it had was told to it as ended: nothing of it comes any more
    orphans = cluster.status()["counters"]["orphan_outputs"]
    serves(cluster, 0)
    assert cluster.status()["counters"]["orphan_outputs"] == orphans
    assert cluster.status()["faults"] == {}


def test_a_silent_rank_that_has_nothing_to_say_is_asked_until_it_answers(new_cluster: NewCluster) -> None:
    """It has lost its request, and would never say anything again."""
    cluster = new_cluster(1, timeouts=TIMEOUTS).start()
    engine = cluster.start_engine(0)
    cluster.wait_ready()
    engine.mute()
    with pinned(cluster, 0) as connection:
        assert is_silent(client.error_of(connection.whole(), 503, "dispatcher_closed"))
    engine.wait_aborted(engine.added[0].id)
    wait_state(cluster, 0, "silent")
    before = len(questions(engine))
    assert before >= 1
    engine.wait_until(lambda: len(questions(engine)) > before + 1, "further questions")
    question = questions(engine)[-1]
    engine.send(1, utility_output=wire.UtilityOutput(question.call_id, None, [None, False]))
    wait_state(cluster, 0, "ready")
    assert cluster.status()["faults"] == {}


def test_a_long_prefill_and_an_idle_rank_are_not_silent(new_cluster: NewCluster) -> None:
    """Rank 0 is in a long prefill and answers between its steps, rank 1 answers nothing but reports stats, rank 2 idles."""
    limit_ms = 2 * LIMIT_MS  # rank 1 talks at the pace of this test
    cluster = new_cluster(3, timeouts=TIMEOUTS | {"rank_silence_ms": limit_ms}).start()
    cluster.start_fake_engines("0", "--step-ms", str(3 * limit_ms))
    talking = cluster.start_engine(1, withhold=True, stats=False)
    cluster.start_engine(2, withhold=True, stats=False)
    cluster.wait_ready()
    with pinned(cluster, 0, 1) as long_prefill, pinned(cluster, 1) as long_queue:
        talking.wait_added()
        deadline = time.monotonic() + 2 * limit_ms / 1000
        step = 0
        while time.monotonic() < deadline:
            step += 1
            talking.send_stats(num_running_reqs=1, num_waiting_reqs=step % 2, step_counter=step)
            cluster.wait_status(
                "fe0", lambda status: rank_row(status, 1)["waiting"] == step % 2, "the stats, as published"
            )
            assert set(rank_states(cluster.status()).values()) == {"ready"}
        assert long_prefill.whole().status == 200
        talking.withhold(False)
        assert long_queue.whole().status == 200
    assert cluster.status()["counters"]["ended"]["rank_lost"] == 0


def test_a_frontend_that_was_stopped_does_not_take_its_own_silence_for_the_ranks(new_cluster: NewCluster) -> None:
    cluster = new_cluster(1, timeouts=TIMEOUTS).start()
    cluster.start_fake_engines(None, "--step-ms", "20")
    cluster.wait_ready()
    with pinned(cluster, 0, 150, stream=True) as stream:
        assert stream.event()["choices"]
        with stopped(cluster["fe0"]):
            time.sleep(2 * LIMIT_MS / 1000)  # the stop itself
        *_, last, done = stream.events()
    assert (last["choices"][0]["finish_reason"], done) == ("length", client.DONE)
    cluster.wait_idle()


def test_one_silent_rank_fails_its_lockstep_group(new_cluster: NewCluster) -> None:
    cluster = new_cluster(2, {"fe0": "0-1", "fe1": "0-1"}, lockstep=True, timeouts=TIMEOUTS).start()
    options = ("--step-ms", "5", "--collective-timeout-ms", "60000")
    engines = [cluster.start_fake_engines(str(rank), *options) for rank in (0, 1)]
    cluster.wait_ready()
    with pinned(cluster, 0, 4000, stream=True) as first, pinned(cluster, 1, 4000, stream=True) as second:
        assert first.event()["choices"] and second.event()["choices"]
        with stopped(engines[1]):
            for stream in (first, second):
                *_, error, done = stream.events()
                assert error["error"]["code"] == "dispatcher_closed" and done == client.DONE
            cluster.wait_status("fe0", lambda status: "silent" in rank_states(status).values(), "the silence")
            client.error_of(client.post(cluster.port(), client.generate_body([1], 4)), 503, "no_rank_ready")
            assert client.get(cluster.port(), "/readyz").status == 503
        cluster.wait_ready()
    for name in ("fe0", "fe1"):
        client.run([client.Job(cluster.port(name), [1, 2, 3], 4)])
    cluster.wait_idle()


def test_without_the_coordinator_independent_ranks_are_served_and_it_shows(new_cluster: NewCluster) -> None:
    cluster = new_cluster(2).start()
    cluster.start_engines()
    cluster.wait_ready()
    cluster.wait_status("fe0", lambda status: status["degraded"] is False, "a coordinator that publishes")
    cluster["coordinator"].kill()
    client.run([client.Job(cluster.port(), [1, i], 4) for i in range(20)])
    status = cluster.wait_status("fe0", lambda status: status["degraded"], "that it is degraded")
    assert status["ready"] and not status["coordinator"]["joined"]
    client.run([client.Job(cluster.port(), [2, i], 4) for i in range(20)])
    cluster.start_coordinator()
    cluster.wait_status("fe0", lambda status: not status["degraded"], "the coordinator's return")
