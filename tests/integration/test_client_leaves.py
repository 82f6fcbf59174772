"""A client that leaves, at any moment and in any manner: its request is aborted (B038)."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from integration import client
from integration.cluster import Cluster, wait_until
from integration.conftest import NewCluster

MANNERS: dict[str, Callable[[client.Connection], None]] = {
    "close": client.Connection.close,
    "reset": client.Connection.reset,
    "half_close": client.Connection.half_close,
}


def make_cluster(new_cluster: NewCluster) -> Cluster:
    cluster = new_cluster(2).start()
    cluster.start_engines(withhold=True)
    return cluster.wait_ready()


def leaves_nothing(cluster: Cluster) -> None:
    """Whatever was added is aborted, at the rank that had it, and no gauge is left over."""
    for engine in cluster.engines:
        engine.wait_until(
            lambda: {request.id for request in engine.added} <= {*engine.aborted}, "ABORT of all"
        )
    cluster.wait_idle()


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("manner", MANNERS)
@pytest.mark.parametrize("delay_ms", [0, 5, 50])
def test_a_client_that_leaves_before_the_first_token_is_aborted(
    shared_cluster: Cluster, stream: bool, manner: str, delay_ms: int
) -> None:
    body = client.generate_body([1, 2, 3], 16, stream=stream)
    with client.open_post(shared_cluster.port(), body) as connection:
        time.sleep(delay_ms / 1000)  # the client's own behaviour, not a wait for something
        MANNERS[manner](connection)
        leaves_nothing(shared_cluster)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("manner", MANNERS)
def test_the_abort_goes_to_the_rank_that_has_the_request(
    shared_cluster: Cluster, stream: bool, manner: str
) -> None:
    gone = shared_cluster.status()["counters"]["ended"].get("client_gone", 0)
    other, engine = shared_cluster.engines
    others_aborts = len(other.aborted)
    count = len(engine.added)
    body = client.generate_body([1, 2, 3], 16, stream=stream)
    with client.open_post(shared_cluster.port(), body, [("X-data-parallel-rank", "1")]) as connection:
        wire_id = engine.wait_added(count + 1).id
        left_at = time.monotonic()
        MANNERS[manner](connection)
        engine.wait_aborted(wire_id)
    record = next(
        record for record in engine.received if isinstance(record.message, list) and wire_id in record.message
    )
    assert record.at - left_at < 2.0  # 0.2 s on an idle machine
    assert len(other.aborted) == others_aborts
    leaves_nothing(shared_cluster)
    status = shared_cluster.status()
    assert status["counters"]["ended"]["client_gone"] == gone + 1
    assert status["counters"]["aborts_sent"] >= gone + 1


@pytest.mark.parametrize("manner", MANNERS)
def test_a_client_that_leaves_in_the_middle_of_a_stream_is_aborted(
    new_cluster: NewCluster, manner: str
) -> None:
    cluster = new_cluster(1).start()
    engine = cluster.start_engine(0, withhold=True)
    cluster.wait_ready()
    body = client.generate_body([1, 2, 3], 16, stream=True)
    with client.open_post(cluster.port(), body) as stream:
        request = engine.wait_added()
        engine.send(request.add.client_index, [engine.output(request, [5, 6])])
        assert stream.event()["choices"][0]["token_ids"] == [5, 6]
        MANNERS[manner](stream)
        engine.wait_aborted(request.id)
    cluster.wait_idle()


def test_many_clients_that_leave_at_once_are_all_aborted(shared_cluster: Cluster) -> None:
    connections: list[Any] = []
    before = sum(len(engine.added) for engine in shared_cluster.engines)
    for number in range(200):
        body = client.generate_body([number], 16, stream=number % 2 == 0)
        connections.append(client.open_post(shared_cluster.port(), body))
    wait_until(
        lambda: sum(len(engine.added) for engine in shared_cluster.engines) == before + 200, "200 ADDs"
    )
    for connection in connections:
        connection.close()
    leaves_nothing(shared_cluster)
