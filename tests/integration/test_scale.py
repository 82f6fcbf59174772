"""Many requests at once and many in a row, every token checked; then a clean end without a leak."""

import signal

from integration import client
from integration.cluster import Cluster
from integration.conftest import NewCluster

STREAMS = 2000
TOKENS = 64
REQUESTS = 10_000


def two_frontends(new_cluster: NewCluster, *options: str) -> Cluster:
    cluster = new_cluster(4, {"fe0": "0-3", "fe1": "0,2"}).start()
    cluster.start_fake_engines("0-3", "--max-num-seqs", str(STREAMS), *options)
    return cluster.wait_ready()


def test_two_thousand_streams_at_once_get_every_token_right(new_cluster: NewCluster) -> None:
    # a token in 150 ms: the last stream has begun long before the first one ends
    cluster = two_frontends(new_cluster, "--step-ms", "150")
    jobs = [
        client.Job(cluster.port("fe0" if number % 2 else "fe1"), [number, 1, 2, 3], TOKENS)
        for number in range(STREAMS)
    ]
    assert client.run(jobs) == STREAMS
    cluster.wait_idle()
    for name in ("fe0", "fe1"):
        counters = cluster.status(name)["counters"]
        assert counters["accepted"] == STREAMS // 2
        assert {cause: count for cause, count in counters["ended"].items() if count} == {
            "length": STREAMS // 2
        }
        assert counters["orphan_outputs"] == counters["aborts_sent"] == 0
        assert cluster.status(name)["faults"] == {}
    ranks = [job.answer.headers["x-data-parallel-rank"] for job in jobs if job.answer]
    assert {rank: ranks.count(rank) > STREAMS // 10 for rank in "0123"} == dict.fromkeys("0123", True)


def test_ten_thousand_requests_and_then_sigterm_leave_no_leak(new_cluster: NewCluster) -> None:
    cluster = two_frontends(new_cluster, "--step-ms", "1", "--tokens-per-step", "4")
    jobs = [
        client.Job(
            cluster.port("fe0" if number % 2 else "fe1"),
            [number % 32000, number // 32],
            4,
            stream=number % 4 == 0,
        )
        for number in range(REQUESTS)
    ]
    client.run(jobs, connections=100)
    cluster.wait_idle()
    for name in ("fe0", "fe1"):
        assert cluster.status(name)["counters"]["accepted"] == REQUESTS // 2
    for (
        process
    ) in cluster.processes:  # a leak is an exit code of its own in a build with the address sanitizer
        assert process.terminate() == 0, process.log


def test_sigint_ends_each_process_cleanly(new_cluster: NewCluster) -> None:
    cluster = two_frontends(new_cluster)
    for process in cluster.processes:
        process.signal(signal.SIGINT)
        assert process.wait_exit() == 0, process.log
