"""Hosts that vanish without a word: packets are dropped, connections stay open, and only heartbeats tell."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from integration import client, hosts
from integration.cluster import Cluster, rank_states, wait_until
from integration.conftest import NewCluster
from integration.hosts import Network
from interop.tokens import expected

WHY_NOT = hosts.missing()
pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))

INTERVAL_MS, TIMEOUT_MS = 500, 2000
DETECTION_S = TIMEOUT_MS / 1000 + 1  # what is promised
SLACK_S = 3.0  # of a busy machine
TIMEOUTS = {"heartbeat_interval_ms": INTERVAL_MS, "heartbeat_timeout_ms": TIMEOUT_MS}
STEP_MS = "20"
LONG = 3000  # tokens: a minute
PROMPT = [1, 2, 3]
# An engine has two connections to a frontend, whose heartbeats do not end in the same moment. These are the ends
# of requests when that for its input goes first, and when that for its output does.
LOSSES = {"dispatcher_closed", "request_stream_closed"}


@pytest.fixture
def network() -> Iterator[Network]:
    """The test itself is on host a."""
    with Network("abc") as network, network.inside("a"):
        yield network


def on_rank(rank: int) -> list[tuple[str, str]]:
    return [("X-data-parallel-rank", str(rank))]


def start_engine(cluster: Cluster, network: Network, host: str, rank: int) -> None:
    with network.inside(host):
        cluster.start_fake_engines(str(rank), "--step-ms", STEP_MS)


def two_hosts(new_cluster: NewCluster, network: Network) -> Cluster:
    """Everything on host a but engine 1, which is on host b."""
    cluster = new_cluster(2, timeouts=TIMEOUTS)
    network.place(cluster, {"coordinator": "a", "fe0": "a"})
    cluster.start()
    start_engine(cluster, network, "a", 0)
    start_engine(cluster, network, "b", 1)
    return cluster.wait_ready()


def begin(cluster: Cluster, rank: int, max_tokens: int, name: str = "fe0") -> client.Connection:
    """A stream that has begun."""
    body = client.generate_body(PROMPT, max_tokens, stream=True, sampling={"ignore_eos": True})
    connection = client.open_post(cluster.port(name), body, on_rank(rank))
    assert connection.event()["choices"][0]["token_ids"]
    return connection


def serves(cluster: Cluster, rank: int, name: str = "fe0") -> None:
    client.run([client.Job(cluster.port(name), PROMPT, 4, headers=on_rank(rank))])


def refused(cluster: Cluster, rank: int, name: str = "fe0") -> None:
    answer = client.post(cluster.port(name), client.generate_body(PROMPT, 4), on_rank(rank))
    client.error_of(answer, 503, "no_rank_ready")


def end_in_failure(connections: list[client.Connection], cut_at: float) -> None:
    """In time, and none much before: then something else than heartbeats told."""
    for connection in connections:
        *_, error, done = connection.events()
        assert error["error"]["code"] in LOSSES and done == client.DONE
    took_s = time.monotonic() - cut_at
    print(f"the partition was noticed after {took_s:.2f} s")
    assert TIMEOUT_MS / 2000 < took_s < DETECTION_S + SLACK_S


def wait_lost(cluster: Cluster, name: str, ranks: set[int]) -> None:
    def lost(status: dict[str, Any]) -> bool:
        return {rank for rank, state in rank_states(status).items() if state == "lost"} == ranks

    cluster.wait_status(name, lost, f"the loss of ranks {ranks} and no other")


def wait_engines_idle(cluster: Cluster) -> None:
    """What was failed is aborted on the engine that lives on."""
    cluster.wait_status("coordinator", lambda s: not any(row["running"] for row in s["ranks"]), "rest of the engines")


def test_a_host_that_vanishes_fails_its_own_requests_and_serves_again_when_it_is_back(
    new_cluster: NewCluster, network: Network
) -> None:
    cluster = two_hosts(new_cluster, network)
    lost = [begin(cluster, 1, LONG) for _ in range(3)]
    whole = client.open_post(cluster.port(), client.generate_body(PROMPT, LONG), on_rank(1))
    beside = begin(cluster, 0, 150)
    cluster.wait_status("fe0", lambda status: status["in_flight"] == 5, "all requests")
    network.partition("b")
    cut_at = time.monotonic()
    serves(cluster, 0)  # nobody knows yet
    end_in_failure(lost, cut_at)
    assert whole.whole().json()["error"]["code"] in LOSSES
    for name in ("fe0", "coordinator"):
        wait_lost(cluster, name, {1})
    refused(cluster, 1)
    serves(cluster, 0)
    *events, done = beside.events()
    assert done == client.DONE
    got = [token for event in events for token in event["choices"][0]["token_ids"]]
    assert got == expected(PROMPT, 150, client.VOCAB_SIZE)[0][-len(got) :] and len(got) > 100
    network.heal("b")  # the engine dials again, but never registers twice
    cluster.wait_ready()
    serves(cluster, 1)
    wait_engines_idle(cluster)
    cluster.wait_idle()


def test_a_successor_takes_the_place_of_an_engine_whose_host_vanished(
    new_cluster: NewCluster, network: Network
) -> None:
    cluster = two_hosts(new_cluster, network)
    lost = begin(cluster, 1, 300)  # the old engine is done with it soon, should no ABORT reach it any more
    network.partition("b")
    cut_at = time.monotonic()
    with network.inside("c"):
        successor = cluster.start_engine(1)  # before anybody knows, so its HELLO has to wait
    end_in_failure([lost], cut_at)
    cluster.wait_ready()
    assert successor.added == [], "nothing is replayed"
    serves(cluster, 1)
    assert len(successor.added) == 1, "the new one serves"

    # The old engine dials again, and its outputs come, which nobody waits for. libzmq gives the place to whoever
    # dialled last, and it serves. Requests may fail as long as the outputs of both come, for that looks like a
    # broken connection; they are told so, and none is lost.
    network.heal("b")
    in_a_row = 0

    def settled() -> bool:
        nonlocal in_a_row
        is_back = cluster.status()["counters"]["orphan_outputs"] > 0
        in_a_row = in_a_row + 1 if ends_truthfully(cluster) and is_back else 0
        return in_a_row == 20

    wait_until(settled, "end of the failures")
    wait_engines_idle(cluster)
    old = next(process for process in cluster.processes if process.name == "engines 1")
    old.kill()  # libzmq has left the successor connected, but nothing reaches it
    wait_until(lambda: ends_truthfully(cluster), "the successor")
    cluster.wait_ready()
    assert len(successor.added) > 1
    serves(cluster, 1)
    cluster.wait_idle()


def ends_truthfully(cluster: Cluster) -> bool:
    """Whether the request was served, and wholly; else it was told what had happened."""
    answer = client.post(cluster.port(), client.generate_body(PROMPT, 4, sampling={"ignore_eos": True}), on_rank(1))
    document = answer.json()
    if answer.status == 200:
        assert document["choices"][0]["token_ids"] == expected(PROMPT, 4, client.VOCAB_SIZE)[0]
        return True
    assert document["error"]["code"] in {*LOSSES, "no_rank_ready"}, document
    return False


def test_a_frontend_that_is_cut_off_ends_its_requests_and_serves_again_when_it_is_back(
    new_cluster: NewCluster, network: Network
) -> None:
    cluster = new_cluster(2, {"fe0": "0-1", "fe1": "0-1"}, timeouts=TIMEOUTS)
    network.place(cluster, {"coordinator": "a", "fe0": "a", "fe1": "b"})
    cluster.start_coordinator()
    cluster.start_frontend("fe0")
    start_engine(cluster, network, "a", 0)
    start_engine(cluster, network, "a", 1)
    with network.inside("b"):  # and its clients, too
        cluster.start_frontend("fe1")
        cluster.wait_ready("fe1")
        lost = [begin(cluster, rank, LONG, "fe1") for rank in (0, 1)]
    cluster.wait_ready("fe0")
    beside = begin(cluster, 0, 100)
    network.partition("b")
    cut_at = time.monotonic()
    end_in_failure(lost, cut_at)
    with network.inside("b"):
        wait_lost(cluster, "fe1", {0, 1})
        refused(cluster, 0, "fe1")
    assert beside.events()[-1] == client.DONE
    serves(cluster, 1)
    wait_lost(cluster, "coordinator", set())
    network.heal("b")
    with network.inside("b"):
        cluster.wait_ready("fe1")
        for rank in (0, 1):
            serves(cluster, rank, "fe1")
        cluster.wait_idle("fe1")
    cluster.wait_status("coordinator", lambda s: all(row["connected"] for row in s["frontends"]), "both frontends")
    wait_engines_idle(cluster)
    cluster.wait_idle("fe0")
