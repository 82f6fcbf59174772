"""The limit of descriptors: raised at the start, and kept off by refusing connections, not by spinning (B118)."""

from __future__ import annotations

import resource
import time
from contextlib import ExitStack

from integration import client
from integration.cluster import wait_until
from integration.conftest import NewCluster
from integration.test_bench import run_bench
from integration.usage import cpu_seconds, descriptors

STREAMS = 1500
FEW = 300
WAITING_S = 2.0


def hard_limit() -> int:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[1]


def test_a_low_soft_limit_is_raised_at_the_start(new_cluster: NewCluster) -> None:
    cluster = new_cluster(2)
    cluster.start_coordinator()
    frontend = cluster.start_frontend("fe0", descriptors=f"1024:{min(hard_limit(), 65536)}")
    cluster.start_fake_engines("0-1", "--step-ms", "200", "--max-num-seqs", str(STREAMS))
    cluster.wait_ready()
    options = ("--streams", STREAMS, "--requests", STREAMS, "--max-tokens", 32, "--check")
    report, _ = run_bench([cluster.port()], *options)
    assert report["ends"]["ok"] == STREAMS
    assert report["most_in_flight"] > 1024
    assert "max_connections" not in frontend.log


def test_at_the_hard_limit_the_next_connections_wait_or_are_refused_and_nobody_spins(
    new_cluster: NewCluster,
) -> None:
    cluster = new_cluster(2, limits={"max_connections": 8192})
    cluster.start_coordinator()
    frontend = cluster.start_frontend("fe0", descriptors=f"{FEW}:{FEW}")
    fits = int(frontend.wait_log(r"more than the descriptor limit allows configured=8192 used=(\d+)")[1])
    engines = [cluster.start_engine(rank, withhold=True) for rank in range(2)]
    cluster.wait_ready()
    body = client.generate_body([1, 2, 3], 8, stream=True)
    with ExitStack() as stack:
        streams = [stack.enter_context(client.open_post(cluster.port(), body)) for _ in range(fits)]
        cluster.wait_status("fe0", lambda status: status["in_flight"] == fits, "a stream in each place")
        for _ in range(2):
            client.error_of(client.post(cluster.port(), body), 503, "overloaded")
        # far more than there are descriptors: each takes one, or waits for one
        more = client.request_bytes("POST", client.GENERATE, None, [("Content-Length", "1")])
        silent = [stack.enter_context(client.Connection(cluster.port(), more)) for _ in range(FEW)]
        before, begun = cpu_seconds(frontend.pid), time.monotonic()
        time.sleep(WAITING_S)  # what it does meanwhile is the question
        share = (cpu_seconds(frontend.pid) - before) / (time.monotonic() - begun)
        assert share < 0.5, "it spins"
        assert descriptors(frontend.pid) < FEW
        for engine in engines:
            engine.withhold(False)
        for stream in streams:
            assert stream.events()[-1] == client.DONE
        assert streams[0].answer.status == 200
        for connection in silent:
            connection.close()
    wait_until(lambda: client.post(cluster.port(), body).status == 200, "room after the others have left")
    cluster.wait_idle()
    assert frontend.alive


def test_a_limit_that_leaves_no_room_is_a_named_error_at_the_start(new_cluster: NewCluster) -> None:
    cluster = new_cluster(2)
    frontend = cluster.start_frontend("fe0", descriptors="128:128")
    frontend.may_end_with = {1}
    assert frontend.wait_exit() == 1
    assert "cannot start why=descriptor limit (RLIMIT_NOFILE): it is 128, and this process needs" in frontend.log
