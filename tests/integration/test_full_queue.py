"""An engine that takes nothing for a while, until its queue is full: what it refuses is told, the rest arrives (B107)."""

from __future__ import annotations

import select
import signal
import time
from contextlib import ExitStack

from integration import client
from integration.cluster import PATIENCE, Cluster, wait_until
from integration.conftest import NewCluster

PIN = "X-data-parallel-rank"
AT_ONCE = 8  # frontend/client.c: the queue has room for so many, and 1000 more
PROMPT = list(range(300, 4300))


def fill_queue(cluster: Cluster) -> client.Answer:
    """Requests to rank 0 whose clients leave, for their ADDs and ABORTs stay in its queue, until one is refused."""
    deadline = time.monotonic() + 3 * PATIENCE
    body = client.generate_body(PROMPT, 4)
    while time.monotonic() < deadline:
        with ExitStack() as stack:
            connections = [
                stack.enter_context(client.open_post(cluster.port(), body, [(PIN, "0")])) for _ in range(AT_ONCE)
            ]
            sockets = {connection.socket: connection for connection in connections}

            def settled() -> bool:
                answered, _, _ = select.select(list(sockets), [], [], 0)
                return len(answered) + cluster.status()["in_flight"] >= AT_ONCE

            wait_until(settled, "an answer or an ADD for each")
            answered, _, _ = select.select(list(sockets), [], [], 0)
            if answered:
                return sockets[answered[0]].whole()
        cluster.wait_idle()
    raise AssertionError("the queue of a stopped engine was never full")


def test_a_rank_whose_queue_is_full_refuses_and_loses_nothing(new_cluster: NewCluster) -> None:
    # a stopped process answers no heartbeat either, and would be lost
    timeouts = {"heartbeat_interval_ms": 60000, "heartbeat_timeout_ms": 120000}
    cluster = new_cluster(2, limits={"max_in_flight": AT_ONCE}, timeouts=timeouts).start()
    engines = [
        cluster.start_fake_engines(str(rank), "--max-model-len", "100000", "--step-ms", "1") for rank in (0, 1)
    ]
    cluster.wait_ready()
    engines[0].signal(signal.SIGSTOP)
    refused = fill_queue(cluster)
    error = client.error_of(refused, 503, "dispatcher_closed")
    assert error["message"].endswith("its input queue is full") and "retry-after" in refused.headers
    # rank 0 has the least in flight, but what may go to either rank goes to the one that takes it
    body = client.generate_body([1, 2, 3], 50000, stream=True, sampling={"ignore_eos": True})
    with client.open_post(cluster.port(), body, [(PIN, "1")]) as stream:
        assert stream.event()["choices"]
        client.error_of(client.post(cluster.port(), client.generate_body([4], 4), [(PIN, "0")]), 503, "dispatcher_closed")
        client.run([client.Job(cluster.port(), [7, i], 4) for i in range(4)])
    engines[0].signal(signal.SIGCONT)
    job = client.Job(cluster.port(), [1, 2], 4, headers=[(PIN, "0")])
    wait_until(lambda: client.post(cluster.port(), client.generate_body([3], 4), job.headers).status == 200, "rank 0")
    client.run([job])
    cluster.wait_idle()
    counters = cluster.status()["counters"]
    assert sum(counters["ended"].values()) == counters["accepted"]
