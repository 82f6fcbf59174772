"""A client that does not read, of a stream that is long and wide: only that stream pays (B043)."""

from __future__ import annotations

import itertools
import json
import signal
import socket
import subprocess
import threading

import pytest

from integration import client
from integration.cluster import Cluster, Process, idle, wait_until
from integration.conftest import NewCluster
from integration.test_bench import command
from integration.usage import rss_bytes
from interop.engine import Engine, Request
from interop.tensors import Packer

CAP = 8 << 20
SLACK = 24 << 20  # for what piles up in front of the loop on a busy machine; all its tokens would be 70 MiB
TOKENS = 200_000
PER_MESSAGE = 100
LOGPROBS = 5
OTHERS = 100
MODEL_LEN = TOKENS + 100
BUSY = 1_000_000
REPORTS = itertools.count()
IDLE_MS = 6000  # longer than it takes to fill the buffer


def start(new_cluster: NewCluster, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """Rank 0 is the test's own and, by what it reports, so busy that it gets only what is pinned to it."""
    # The address sanitizer keeps freed memory for a while, which would look like growth.
    monkeypatch.setenv("ASAN_OPTIONS", "quarantine_size_mb=1")
    cluster = new_cluster(
        2,
        {"fe0": "0-1", "fe1": "0"},  # what a frontend that is alone with a rank knows itself outweighs reports
        limits={"max_stream_bytes": CAP},
        timeouts={"http_idle_ms": IDLE_MS},
    ).start()
    engine = cluster.start_engine(0, withhold=True, stats=False, max_model_len=MODEL_LEN)
    cluster.start_fake_engines("1", "--step-ms", "10", "--max-model-len", str(MODEL_LEN))
    cluster.wait_ready()
    report_busy(engine)
    cluster.wait_status("fe0", lambda status: status["ranks"][0]["running"] >= BUSY, "the report")
    return cluster


def report_busy(engine: Engine) -> None:
    """Each time with another number, for one that is only repeated is not believed for long."""
    engine.send_stats(num_running_reqs=BUSY + next(REPORTS), step_counter=1)


class Peak(threading.Thread):
    """The most memory that the process has had since now."""

    def __init__(self, process: Process) -> None:
        super().__init__(daemon=True)
        self.enough = threading.Event()
        self.before = self.most = rss_bytes(process.pid)
        self._pid = process.pid

    def run(self) -> None:
        while not self.enough.wait(0.002):
            self.most = max(self.most, rss_bytes(self._pid))


def flood(engine: Engine, request: Request, port: int) -> None:
    """All the tokens with their logprobs, each message with the same ones: what is in them does not matter. No faster
    than the frontend's loop turns, for what waits in front of it is not the reader's."""
    packer = Packer("numpy", 256)
    output = request.output(list(range(PER_MESSAGE)), packer)
    frames = [engine._envelope([output], {}), *packer.frames]
    sent = 0
    while sent < TOKENS:
        engine.send_raw("output:1", frames)
        sent += PER_MESSAGE
        if sent % (50 * PER_MESSAGE) == 0:
            report_busy(engine)
            assert client.get(port, "/livez").status == 200


def test_a_client_that_does_not_read_costs_its_buffer_and_nobody_else(
    new_cluster: NewCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = start(new_cluster, monkeypatch)
    engine = cluster.engines[0]
    options = ("--streams", OTHERS, "--seconds", 120, "--max-tokens", 64, "--check")
    load = subprocess.Popen(command([cluster.port()], *options), stdout=subprocess.PIPE, text=True)

    def ended() -> int:
        report_busy(engine)
        return cluster.status()["counters"]["ended"]["length"]

    wait_until(lambda: ended() > 2 * OTHERS, "the load")
    body = client.generate_body([1, 2, 3], TOKENS, stream=True, sampling={"logprobs": LOGPROBS})
    with client.open_post(cluster.port(), body, [("X-data-parallel-rank", "0")]) as slow:
        slow.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        request = engine.wait_added()
        peak = Peak(cluster["fe0"])
        peak.start()
        flood(engine, request, cluster.port())
        engine.wait_aborted(request.id)
        so_far = ended()
        wait_until(lambda: ended() > so_far + 2 * OTHERS, "ends of the others")
        cluster.wait_status("fe0", lambda status: status["counters"]["ended"]["slow_consumer"] == 1, "its end")
        peak.enough.set()
        peak.join()
        load.send_signal(signal.SIGTERM)
        report = json.loads(load.communicate(timeout=60)[0])
        # its client still does not read, and is given up all the same; the one connection is of this question
        closed = cluster.wait_status("fe0", lambda status: status["http"]["connections"] == 1, "its close")
        assert idle(closed)
    growth = peak.most - peak.before
    print(f"grew by {growth >> 10} KiB, the cap is {CAP >> 10}; gaps of the others: {report['gap_ms']}")
    assert load.returncode == 0 and report["ends"]["ok"] == report["requests"], report["ends"]
    assert growth < CAP + SLACK, "more than its buffer and what the others need"
    assert report["gap_ms"]["p99"] < 2000
