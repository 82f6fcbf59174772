"""What the processes say of themselves, and what the coordinator publishes (protocol.md 8)."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest
import zmq

from integration import client
from integration.cluster import Cluster, rank_row
from integration.conftest import NewCluster
from integration.peer import Peer
from interop.tokens import expected

RANK_KEYS = {
    "rank",
    "state",
    "since_ms",
    "in_flight",
    "waiting",
    "running",
    "kv_cache_usage",
    "stats_age_ms",
    "max_model_len",
    "vllm_version",
}


def make_cluster(new_cluster: NewCluster) -> Cluster:
    cluster = new_cluster(2, {"fe0": "0-1", "fe1": "1", "off": "0"})
    cluster.start_coordinator()
    cluster.start_frontend("fe0")
    cluster.start_frontend("fe1")
    cluster.start_engines()
    return cluster.wait_ready("fe0", "fe1")


def test_a_frontend_says_how_it_is(shared_cluster: Cluster) -> None:
    status = shared_cluster.status("fe0")
    assert (status["process"], status["name"], status["ready"]) == ("frontend", "fe0", True)
    assert status["version"] and status["faults"] == {}
    assert (status["in_flight"], status["buffered_bytes"]) == (0, 0)
    assert status["counters"].keys() >= {"accepted", "ended", "orphan_outputs", "aborts_sent"}
    assert [row["rank"] for row in status["ranks"]] == [0, 1]
    for row in status["ranks"]:
        assert row.keys() >= RANK_KEYS
        assert (row["state"], row["max_model_len"], row["vllm_version"]) == ("ready", 4096, "0.15.0")
        assert row["since_ms"] >= 0 and row["in_flight"] == 0
    assert [row["rank"] for row in shared_cluster.status("fe1")["ranks"]] == [1]


def test_the_coordinator_says_how_everyone_is(shared_cluster: Cluster) -> None:
    status = shared_cluster.status("coordinator")
    assert (status["process"], status["waiting"], status["wave"], status["engines_running"]) == (
        "coordinator",
        None,
        0,
        False,
    )
    assert [(row["rank"], row["state"]) for row in status["ranks"]] == [(0, "ready"), (1, "ready")]
    assert all(row.keys() >= RANK_KEYS for row in status["ranks"])
    frontends = {row["name"]: row for row in status["frontends"]}
    assert {name: row["connected"] for name, row in frontends.items()} == {
        "fe0": True,
        "fe1": True,
        "off": False,
    }
    assert frontends["off"]["last_beat_ms"] is None and frontends["fe0"]["last_beat_ms"] >= 0


@pytest.mark.parametrize("process", ["fe0", "coordinator"])
@pytest.mark.parametrize("path", ["/health", "/livez", "/readyz"])
def test_the_health_routes_answer(shared_cluster: Cluster, process: str, path: str) -> None:
    answer = client.get(shared_cluster.port(process), path)
    assert answer.status == 200 and answer.headers["content-type"] == "application/json"
    assert isinstance(answer.json(), dict)


def test_readyz_says_why_not(new_cluster: NewCluster) -> None:
    cluster = new_cluster(2).start()
    for process in ("fe0", "coordinator"):
        answer = client.get(cluster.port(process), "/readyz")
        assert answer.status == 503
        document = answer.json()
        assert document["ready"] is False and document["reason"]


def test_ends_are_counted_by_cause(new_cluster: NewCluster) -> None:
    cluster = new_cluster(1).start()
    cluster.start_engine(0)
    cluster.wait_ready()
    stop = expected([1], 3, client.VOCAB_SIZE)[0][2]
    for sampling in ({"stop_token_ids": [stop]}, {"ignore_eos": True}, {"ignore_eos": True}):
        assert client.post(cluster.port(), client.generate_body([1], 8, sampling=sampling)).status == 200
    client.post(cluster.port(), b"{")
    counters = cluster.status()["counters"]
    assert counters["accepted"] == 3
    assert {cause: count for cause, count in counters["ended"].items() if count} == {"stop": 1, "length": 2}


def test_requests_in_flight_are_shown_for_each_rank(new_cluster: NewCluster) -> None:
    cluster = new_cluster(2).start()
    engines = cluster.start_engines(withhold=True)
    cluster.wait_ready()
    body = client.generate_body([1], 8)
    with client.open_post(cluster.port(), body, [("X-data-parallel-rank", "1")]) as connection:
        engines[1].wait_added()
        status = cluster.status()
        assert status["in_flight"] == 1 and [row["in_flight"] for row in status["ranks"]] == [0, 1]
        cluster.wait_status(
            "coordinator", lambda status: rank_row(status, 1)["in_flight"] == 1, "the beat's count"
        )
        engines[1].withhold(False)
        assert connection.whole().status == 200
    cluster.wait_idle()


@contextmanager
def subscriber(cluster: Cluster) -> Iterator[Peer]:
    with Peer(zmq.SUB, cluster.address["frontend_publish"]) as peer:
        publish(peer)  # a newcomer is told the counts at once
        yield peer


def publish(peer: Peer, timeout: float = 20.0) -> list[Any]:
    frames = peer.receive(timeout)
    assert frames and len(frames) == 1, frames
    counts, wave, running = msgspec.msgpack.decode(frames[0])
    assert isinstance(wave, int) and isinstance(running, bool)
    return counts


def wait_publish(peer: Peer, wanted: list[list[Any]]) -> None:
    deadline = time.monotonic() + 20
    while (counts := publish(peer)) != wanted:
        assert time.monotonic() < deadline, f"{wanted} was not published, but {counts}"


def test_counts_are_published_in_rank_order_and_seen_by_frontends(new_cluster: NewCluster) -> None:
    cluster = new_cluster(2).start()
    engines = cluster.start_engines()
    cluster.wait_ready()
    with subscriber(cluster) as peer:
        engines[1].send_stats(num_waiting_reqs=3, num_running_reqs=2, kv_cache_usage=0.25, step_counter=1)
        wait_publish(peer, [[0, 0, 0.0], [3, 2, 0.25]])
        engines[0].send_stats(num_running_reqs=1, kv_cache_usage=0.5, step_counter=1)
        wait_publish(peer, [[0, 1, 0.5], [3, 2, 0.25]])
    for process in ("fe0", "coordinator"):
        status = cluster.wait_status(
            process, lambda status: rank_row(status, 0)["running"] == 1, "the counts"
        )
        row = rank_row(status, 1)
        assert (row["waiting"], row["running"], row["kv_cache_usage"]) == (3, 2, 0.25)
        assert row["stats_age_ms"] >= 0


def test_a_steady_stream_of_stats_neither_starves_nor_floods_the_publishing(new_cluster: NewCluster) -> None:
    cluster = new_cluster(1)
    cluster.start_coordinator()
    engine = cluster.start_engine(0).wait_serving()
    with subscriber(cluster) as peer:
        engine.send_stats(num_running_reqs=1, step_counter=1)
        wait_publish(peer, [[0, 1, 0.0]])
        began = time.monotonic()
        times: list[float] = []
        step = 2
        while time.monotonic() - began < 1.0:
            engine.send_stats(num_running_reqs=step, step_counter=step)
            step += 1
            while peer.receive(0.001):
                times.append(time.monotonic() - began)
        wait_publish(peer, [[0, step - 1, 0.0]])  # the last word is not lost
    assert step > 50
    assert 3 <= len(times) <= 12, times  # every 100 ms, give or take a busy machine


def test_counts_are_published_every_five_seconds_without_news(new_cluster: NewCluster) -> None:
    cluster = new_cluster(1)
    cluster.start_coordinator()
    engine = cluster.start_engine(0).wait_serving()
    with subscriber(cluster) as peer:
        engine.send_stats(num_running_reqs=1, step_counter=1)
        wait_publish(peer, [[0, 1, 0.0]])
        began = time.monotonic()
        assert publish(peer, 8) == [[0, 1, 0.0]]
        assert 4.0 < time.monotonic() - began < 6.0
