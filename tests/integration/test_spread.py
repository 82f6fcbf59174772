"""Load balancing over time (B025): a publish that is fresh but old must not wipe what this frontend knows of itself."""

from __future__ import annotations

from contextlib import ExitStack

from integration import client
from integration.cluster import wait_until
from integration.conftest import NewCluster


def test_a_steady_publish_of_zeros_does_not_skew_the_choice(new_cluster: NewCluster) -> None:
    cluster = new_cluster(4).start()
    engines = [cluster.start_engine(rank, withhold=True) for rank in range(4)]
    cluster.wait_ready()
    with ExitStack() as stack:
        for burst in range(10):
            publishes = cluster.status("coordinator")["counters"]["publishes"]
            for i in range(40):
                stack.enter_context(client.open_post(cluster.port(), client.generate_body([burst, i], 4)))
            cluster.wait_status("fe0", lambda status: status["in_flight"] == 40 * (burst + 1), "the burst")
            wait_until(lambda: sum(len(e.added) for e in engines) == 40 * (burst + 1), "the ADDs at the engines")
            counts = [len(engine.added) for engine in engines]
            assert max(counts) - min(counts) <= 2, counts
            # the engines report that nothing waits or runs there, each time with a new number so that it is published
            for engine in engines:
                engine.send_stats(kv_cache_usage=0.001 * (burst % 2 + 1), step_counter=burst + 1)
            cluster.wait_status(
                "coordinator", lambda status: status["counters"]["publishes"] > publishes, "a publish"
            )
