"""Many frontends over many ranks, each frontend with other ranks, so that it has another client index at each rank:
every reply goes home (B119). WG_MANY_FRONTENDS=16 WG_MANY_RANKS=32 WG_MANY_STREAMS=20000 is the large run."""

from __future__ import annotations

import os

from integration.conftest import NewCluster
from integration.test_bench import run_bench

FRONTENDS = int(os.environ.get("WG_MANY_FRONTENDS", "6"))
RANKS = int(os.environ.get("WG_MANY_RANKS", "12"))
STREAMS = int(os.environ.get("WG_MANY_STREAMS", "1500"))
TOKENS = 32


def subset(frontend: int) -> str:
    """All ranks but each third, from another one on for each frontend."""
    return ",".join(str(rank) for rank in range(RANKS) if (rank + frontend) % 3)


def test_every_reply_goes_home(new_cluster: NewCluster) -> None:
    cluster = new_cluster(RANKS, {f"fe{number}": subset(number) for number in range(FRONTENDS)}).start()
    engines = cluster.start_fake_engines(
        f"0-{RANKS - 1}", "--step-ms", "20", "--max-num-seqs", str(STREAMS), "--events"
    )
    cluster.wait_ready()
    urls = [cluster.port(name) for name in cluster.frontends]
    report, _ = run_bench(
        urls, *("--streams", STREAMS, "--requests", STREAMS, "--max-tokens", TOKENS, "--check")
    )
    assert report["ends"]["ok"] == STREAMS
    assert report["tokens"] == STREAMS * TOKENS
    cluster.wait_idle()
    for name in cluster.frontends:
        status = cluster.status(name)
        ended = {cause: count for cause, count in status["counters"]["ended"].items() if count}
        assert set(ended) == {"length"} and abs(ended["length"] - STREAMS / FRONTENDS) <= 1
        assert status["counters"]["orphan_outputs"] == 0 and status["faults"] == {}
    added = [event for event in engines.events if event["event"] == "add"]
    assert len(added) == STREAMS
    indexes = {event["client_index"] for event in added}
    assert min(indexes) == 1 and max(indexes) < FRONTENDS, "no rank has all of the frontends"
