"""Signals at any moment: those that are not about the end change nothing, however many come (B071)."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import threading
from contextlib import ExitStack

from integration import client
from integration.cluster import Process, wait_until
from integration.conftest import NewCluster
from integration.test_bench import command

HARMLESS = (
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGCHLD,
    signal.SIGWINCH,
    signal.SIGURG,
    signal.SIGPIPE,
    signal.SIGCONT,
)
STREAMS = 50
ENOUGH = 1000  # signals to each


class Storm(threading.Thread):
    """Bursts of harmless signals, until told to stop. A stop with SIGCONT at once interrupts system calls, too."""

    def __init__(self, processes: list[Process]) -> None:
        super().__init__(daemon=True)
        self.enough = threading.Event()
        self.sent = 0
        self._processes = processes

    def run(self) -> None:
        numbers = random.Random(1)
        while not self.enough.wait(0.001):
            for process in self._processes:
                for _ in range(numbers.randrange(1, 20)):
                    process.signal(numbers.choice(HARMLESS))
                process.signal(signal.SIGSTOP)
                process.signal(signal.SIGCONT)
            self.sent += 1


def test_a_storm_of_signals_loses_nothing_and_sigterms_end_in_order(new_cluster: NewCluster) -> None:
    cluster = new_cluster(2, timeouts={"drain_ms": 20000}).start()
    cluster.start_fake_engines("0-1", "--step-ms", "5")
    cluster.wait_ready()
    storm = Storm([cluster["coordinator"], cluster["fe0"]])
    storm.start()
    options = ("--streams", STREAMS, "--seconds", 120, "--max-tokens", 64, "--check")
    load = subprocess.Popen(command([cluster.port()], *options), stdout=subprocess.PIPE, text=True)
    wait_until(lambda: storm.sent * 10 > ENOUGH, "a storm")
    wait_until(lambda: cluster.status()["counters"]["ended"]["length"] > 4 * STREAMS, "ends of streams")
    storm.enough.set()
    storm.join()
    load.send_signal(signal.SIGTERM)
    report = json.loads(load.communicate(timeout=60)[0])
    assert load.returncode == 0
    assert report["ends"]["ok"] == report["requests"] > 4 * STREAMS, report["ends"]
    with ExitStack() as stack:
        bodies = [client.generate_body([number], 200, stream=True) for number in range(STREAMS)]
        streams = [stack.enter_context(client.open_post(cluster.port(), body)) for body in bodies]
        for stream in streams:
            assert "choices" in stream.event()
        for _ in range(100):
            cluster["fe0"].signal(signal.SIGTERM)
            cluster["coordinator"].signal(signal.SIGTERM)
        for stream in streams:
            *events, done = stream.events()
            assert events[-1]["choices"][0]["finish_reason"] == "length" and done == client.DONE
    for name in ("fe0", "coordinator"):
        assert cluster[name].wait_exit() == 0
        assert sum("stopping" in line for line in cluster[name].lines) == 1
    assert cluster["fe0"].lines[-1].endswith("stopped")
