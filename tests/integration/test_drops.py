"""Clients that leave at every phase of a request: no table keeps anything of them, and the ranks are chosen as
before (B028). WG_DROPS=24000 is the long run."""

from __future__ import annotations

import os

from integration import client
from integration.conftest import NewCluster
from integration.test_bench import PHASES, run_bench, total

DROPS = int(os.environ.get("WG_DROPS", "3000"))
RANKS = 4
AFTERWARDS = 400


def test_dropped_streams_leave_every_table_empty_and_the_choice_even(new_cluster: NewCluster) -> None:
    cluster = new_cluster(RANKS, {"fe0": "0-3", "fe1": "0-3"}).start()
    engines = cluster.start_fake_engines("0-3", "--step-ms", "3", "--max-num-seqs", "1000", "--events")
    cluster.wait_ready()
    urls = [cluster.port(name) for name in cluster.frontends]
    options = ("--streams", 300, "--requests", DROPS, "--max-tokens", 32, "--drop", 1.0, "--check")
    ends = run_bench(urls, *options)[0]["ends"]
    assert {*ends["dropped"]} == PHASES
    # an answer may be whole before the event at which its reader wanted to leave
    assert ends["ok"] + total(ends["dropped"]) == DROPS and ends["ok"] < DROPS / 2
    cluster.wait_idle()
    for name in cluster.frontends:
        cluster.wait_status(name, lambda status: status["http"]["connections"] == 1, "the end of the connections")
        assert cluster.status(name)["faults"] == {}
    cluster.wait_status(
        "coordinator",
        lambda status: all(row["in_flight"] == row["running"] == row["waiting"] == 0 for row in status["ranks"]),
        "ranks that have nothing",
    )
    added = {event["request_id"] for event in engines.events if event["event"] == "add"}
    ended = {event["request_id"] for event in engines.events if event["event"] in ("finish", "abort")}
    assert added == ended
    for name in cluster.frontends:
        jobs = [client.Job(cluster.port(name), [number, 3], 4) for number in range(AFTERWARDS)]
        client.run(jobs, connections=20)
        ranks = [job.answer.headers["x-data-parallel-rank"] for job in jobs if job.answer]
        counts = {rank: ranks.count(str(rank)) for rank in range(RANKS)}
        even = AFTERWARDS / RANKS
        assert all(abs(count - even) <= 0.05 * AFTERWARDS for count in counts.values()), counts
        print(f"{DROPS} dropped: {ends}; the next {AFTERWARDS} of {name}: {counts}")
