"""Which rank gets a request: by load, or as it was told (B011, B024, B030, B031, B032)."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from integration import client
from integration.cluster import PATIENCE, Cluster, rank_row, rank_states, wait_until
from integration.conftest import NewCluster
from interop.engine import Engine

PIN = "X-data-parallel-rank"


@contextmanager
def in_flight(
    cluster: Cluster, count: int, headers: client.Headers = (), name: str = "fe0"
) -> Iterator[None]:
    """That many requests at once, which the engines are to withhold."""
    with ExitStack() as stack:
        before = sum(len(engine.added) for engine in cluster.engines)
        for number in range(count):
            body = client.generate_body([number], 8, stream=number % 2 == 0)
            stack.enter_context(client.open_post(cluster.port(name), body, headers))
        cluster.wait_status(name, lambda status: status["in_flight"] == count, f"{count} in flight")
        wait_until(
            lambda: sum(len(engine.added) for engine in cluster.engines) == before + count, f"{count} ADDs"
        )
        yield


def shares(engines: list[Engine]) -> list[int]:
    return [len(engine.requests) for engine in engines]


def quiet_cluster(new_cluster: NewCluster, frontends: int = 1, **options: Any) -> Cluster:
    cluster = new_cluster(4, {f"fe{number}": "0-3" for number in range(frontends)}, **options).start()
    cluster.start_engines(withhold=True, stats=False)
    return cluster.wait_ready()


def test_a_burst_before_the_first_stats_is_spread_evenly(new_cluster: NewCluster) -> None:
    cluster = quiet_cluster(new_cluster)
    with in_flight(cluster, 40):
        assert shares(cluster.engines) == [10, 10, 10, 10]


@pytest.mark.parametrize("stats_sockets", [False, True])
def test_without_a_coordinator_own_counts_decide(new_cluster: NewCluster, stats_sockets: bool) -> None:
    cluster = quiet_cluster(new_cluster, stats_sockets=stats_sockets)
    cluster["coordinator"].kill()
    with in_flight(cluster, 40):
        assert shares(cluster.engines) == [10, 10, 10, 10]


def test_a_rank_that_reports_load_gets_less(new_cluster: NewCluster) -> None:
    cluster = quiet_cluster(new_cluster, frontends=2)
    cluster.engines[1].send_stats(
        num_running_reqs=100, num_waiting_reqs=5, kv_cache_usage=0.9, step_counter=1
    )
    cluster.wait_status("fe0", lambda status: status["ranks"][1]["running"] == 100, "the published load")
    with in_flight(cluster, 30):
        assert shares(cluster.engines) == [10, 0, 10, 10]


def test_a_rank_that_only_this_frontend_serves_is_idle_when_it_has_nothing_of_ours(
    new_cluster: NewCluster,
) -> None:
    cluster = quiet_cluster(new_cluster)
    cluster.engines[1].send_stats(num_running_reqs=100, step_counter=1)
    cluster.wait_status("fe0", lambda status: status["ranks"][1]["running"] == 100, "the published load")
    with in_flight(cluster, 4):
        assert shares(cluster.engines) == [1, 1, 1, 1]


def test_a_rank_that_never_reports_again_is_not_shunned(new_cluster: NewCluster) -> None:
    """The only frontend of a rank goes there again at once; several do when the old numbers, which are
    repeated all the time, are no news any more (B030)."""
    cluster = new_cluster(3, {"only": "0,1", "fe0": "1-2", "fe1": "1-2"}).start()
    engines = cluster.start_engines(withhold=True, stats=False)
    cluster.wait_ready()
    bad = {"num_waiting_reqs": 5, "num_running_reqs": 106, "kv_cache_usage": 0.9}
    with ExitStack() as stack:
        for name, rank in (("only", 0), ("fe0", 2)):
            body = client.generate_body([1], 8)
            stack.enter_context(client.open_post(cluster.port(name), body, [(PIN, str(rank))]))
            engines[rank].wait_added()
        reported = time.monotonic()
        for name, rank in (("only", 0), ("fe0", 2), ("fe1", 2)):
            engines[rank].send_stats(step_counter=1, **bad)
            cluster.wait_status(
                name, lambda status: rank_row(status, rank)["running"] == 106, "the bad report"
            )
    cluster.wait_idle()
    with ExitStack() as stack:
        dropped = time.monotonic()
        while len(engines[0].added) < 2:
            assert time.monotonic() - dropped < PATIENCE, "rank 0 is shunned"
            count = sum(len(engine.added) for engine in engines)
            stack.enter_context(client.open_post(cluster.port("only"), client.generate_body([2], 8)))
            wait_until(lambda: sum(len(engine.added) for engine in engines) == count + 1, "an ADD")
        assert len(engines[1].added) <= 1  # it had its turn among equals
    cluster.wait_idle()
    refreshes = cluster.status("coordinator")["counters"]["publishes"]
    while len(engines[2].added) < 2:
        assert time.monotonic() - reported < 10 + PATIENCE, "rank 2 is shunned"
        count = sum(len(engine.added) for engine in engines)
        with client.open_post(cluster.port("fe1"), client.generate_body([3], 8)):
            wait_until(lambda: sum(len(engine.added) for engine in engines) == count + 1, "an ADD")
        cluster.wait_idle("fe1")
    assert time.monotonic() - reported > 9.9  # while they were new, they were believed
    assert cluster.status("coordinator")["counters"]["publishes"] > refreshes
    assert rank_row(cluster.status("fe1"), 2)["running"] == 106  # repeated all the time, and still shown


def test_a_pin_is_obeyed_even_where_the_rank_is_loaded(new_cluster: NewCluster) -> None:
    cluster = quiet_cluster(new_cluster)
    cluster.engines[2].send_stats(num_running_reqs=100, num_waiting_reqs=50, step_counter=1)
    cluster.wait_status("fe0", lambda status: status["ranks"][2]["waiting"] == 50, "the published load")
    with in_flight(cluster, 5, [(PIN, "2")]):
        assert shares(cluster.engines) == [0, 0, 5, 0]


def test_a_pin_in_the_body_is_obeyed(new_cluster: NewCluster) -> None:
    cluster = new_cluster(4).start()
    engines = cluster.start_engines()
    cluster.wait_ready()
    for rank in (3, 1, 3):
        answer = client.post(cluster.port(), client.generate_body([rank], 4, data_parallel_rank=rank))
        assert (answer.status, answer.headers["x-data-parallel-rank"]) == (200, str(rank))
    assert [len(engine.added) for engine in engines] == [0, 1, 0, 2]


def make_cluster(new_cluster: NewCluster) -> Cluster:
    cluster = new_cluster(4, {"fe0": "0-3", "fe1": "0,2"}).start()
    cluster.start_engines()
    return cluster.wait_ready()


def refused(cluster: Cluster, headers: client.Headers, **fields: Any) -> str:
    """The message of a refused pin at the frontend with ranks 0 and 2, after which nothing was forwarded."""
    added = [len(engine.added) for engine in cluster.engines]
    answer = client.post(cluster.port("fe1"), client.generate_body([1], 4, **fields), headers)
    error = client.error_of(answer, 400, "invalid_data_parallel_rank")
    assert error["type"] == "invalid_request_error"
    assert [len(engine.added) for engine in cluster.engines] == added
    return error["message"]


@pytest.mark.parametrize(
    "pin",
    [
        "-1",
        "1",
        "3",
        "4",
        "65536",
        "99999999999999999999",
        "abc",
        "1,2",
        "0,2",
        "",
        "2 0",
        "0x2",
        "+2",
        "2.0",
    ],
)
def test_a_pin_that_names_no_rank_of_the_frontend_is_refused(shared_cluster: Cluster, pin: str) -> None:
    assert refused(shared_cluster, [(PIN, pin)]).endswith("connected ranks: [0, 2]")


@pytest.mark.parametrize("pins", [("0", "2"), ("2", "2")])
def test_two_pins_are_refused(shared_cluster: Cluster, pins: tuple[str, str]) -> None:
    assert refused(shared_cluster, [(PIN, pin) for pin in pins]).endswith("connected ranks: [0, 2]")


@pytest.mark.parametrize("rank", [-1, 1, 4, 65536, 2**62])
def test_a_pin_in_the_body_that_names_no_rank_of_the_frontend_is_refused(
    shared_cluster: Cluster, rank: int
) -> None:
    assert refused(shared_cluster, [], data_parallel_rank=rank).endswith("connected ranks: [0, 2]")


def test_a_pin_to_a_rank_that_is_not_ready_waits_for_nobody(new_cluster: NewCluster) -> None:
    cluster = new_cluster(2).start()
    cluster.start_engine(0)
    cluster.wait_status("fe0", lambda status: rank_states(status)[0] == "ready", "rank 0 ready")
    answer = client.post(cluster.port(), client.generate_body([1], 4), [(PIN, "1")])
    client.error_of(answer, 503, "no_rank_ready")
    assert int(answer.headers["retry-after"]) >= 1


def test_ranks_are_global_and_not_counted_from_the_frontends_first(new_cluster: NewCluster) -> None:
    cluster = new_cluster(8, {"lower": "0-3", "upper": "4-7"})
    cluster.start_coordinator()
    cluster.start_frontend("upper")
    engines = {rank: cluster.start_engine(rank) for rank in range(4, 8)}
    cluster.wait_ready("upper")
    port = cluster.port("upper")
    answer = client.post(port, client.generate_body([1], 4), [(PIN, "4")])
    assert (answer.status, answer.headers["x-data-parallel-rank"], len(engines[4].added)) == (200, "4", 1)
    answer = client.post(port, client.generate_body([1], 4), [(PIN, "0")])
    assert (
        "connected ranks: [4, 5, 6, 7]"
        in client.error_of(answer, 400, "invalid_data_parallel_rank")["message"]
    )
