"""An engine that goes on with what nobody wants any more is told so again, but not at every output (B039)."""

from __future__ import annotations

import time

from integration import client
from integration.conftest import NewCluster

LASTS_S = 2.5
PAUSE_S = 0.02


def test_an_abort_that_the_engine_lost_is_repeated_once_a_second(new_cluster: NewCluster) -> None:
    cluster = new_cluster(1).start()
    engine = cluster.start_engine(0, withhold=True)
    cluster.wait_ready()
    with client.open_post(cluster.port(), client.generate_body([1, 2, 3], 4000, stream=True)) as stream:
        request = engine.wait_added()
        engine.send(1, [engine.output(request, [5])])
        assert stream.event()["choices"][0]["token_ids"] == [5]
    engine.wait_aborted(request.id)  # and there it is lost: the engine goes on
    lines = len(cluster["fe0"].lines)
    sent, begun = 0, time.monotonic()
    while time.monotonic() - begun < LASTS_S:
        engine.send(1, [engine.output(request, [6])])
        sent += 1
        time.sleep(PAUSE_S)  # the engine's step
    lasted = time.monotonic() - begun
    cluster.wait_status("fe0", lambda status: status["counters"]["orphan_outputs"] >= sent, "count of all orphans")
    again = engine.aborted.count(request.id) - 1
    assert 2 <= again <= lasted + 1, f"{again} times more in {lasted:.1f} s"
    assert len(cluster["fe0"].lines) - lines <= lasted + 1, "no flood"
    cluster.wait_idle()
