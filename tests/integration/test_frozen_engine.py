"""An engine that answers nothing any more while its connections stay open, as after its host has vanished: heartbeats
find it, and its successor is not locked out by the old connection (B056, B104)."""

from __future__ import annotations

import signal
import time

import pytest

from integration import client
from integration.cluster import PATIENCE, rank_states
from integration.conftest import NewCluster

INTERVAL_MS = 200
TIMEOUT_MS = 1000
PIN = "X-data-parallel-rank"


@pytest.mark.parametrize("tcp", [False, True])
def test_a_frozen_engine_is_lost_by_its_silence_and_replaced(new_cluster: NewCluster, tcp: bool) -> None:
    timeouts = {"heartbeat_interval_ms": INTERVAL_MS, "heartbeat_timeout_ms": TIMEOUT_MS}
    cluster = new_cluster(2, tcp=tcp, timeouts=timeouts).start()
    frozen, other = (cluster.start_fake_engines(str(rank), "--step-ms", "10") for rank in (0, 1))
    cluster.wait_ready()
    body = client.generate_body([1, 2, 3], 4000, stream=True)
    with (
        client.open_post(cluster.port(), body, [(PIN, "0")]) as lost,
        client.open_post(cluster.port(), client.generate_body([5], 300, stream=True), [(PIN, "1")]) as kept,
    ):
        assert lost.event()["choices"] and kept.event()["choices"]
        frozen.signal(signal.SIGSTOP)
        begun = time.monotonic()
        *_, error, done = lost.events()
        took = time.monotonic() - begun
        # whichever of its two connections is given up first
        assert error["error"]["code"] in ("dispatcher_closed", "request_stream_closed") and done == client.DONE
        assert TIMEOUT_MS / 2000 < took < PATIENCE / 2, took
        assert kept.events()[-1] == client.DONE
    for name in ("fe0", "coordinator"):
        cluster.wait_status(name, lambda status: rank_states(status) == {0: "lost", 1: "ready"}, "the loss")
    successor = cluster.start_fake_engines("0", "--step-ms", "1", "--events")
    cluster.wait_ready()
    assert [event for event in successor.events if event["event"] == "add"] == [], "nothing is replayed"
    client.run([client.Job(cluster.port(), [7], 4, headers=[(PIN, "0")])])
    frozen.kill()
    client.run([client.Job(cluster.port(), [8], 4, headers=[(PIN, "0")])])
    assert rank_states(cluster.status()) == {0: "ready", 1: "ready"}
    assert other.alive and successor.alive
