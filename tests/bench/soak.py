"""Load for as long as one likes, and whether it leaves anything behind: memory, descriptors, gauges that are not 0.
The cluster is one of its own: a coordinator, two frontends and fake engines. The load is wavegate-bench, which
checks every token, in rounds; requests are short and long, some are dropped and some read slowly.

    cd tests && WG_BUILD=../build/demo ../build/test/venv/bin/python -m bench.soak --minutes 20 --streams 2000

Exit status 1 when something was wrong, or memory was not flat. Of programs with the address sanitizer the memory says
nothing, for freed memory stays theirs: it is shown, and not judged.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from integration.chaos.memory import is_sanitized, resident_kib
from integration.cluster import Cluster, Process, build_folder

FRONTENDS = ("fe0", "fe1")
OURS = ("coordinator", *FRONTENDS)
LENGTHS = ((16, 16), (128, 64), (1024, 256))  # prompt and new tokens; the streams are divided evenly among them
MOST_GROWTH = 1.05  # from the second third of the samples to the last one
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass
class Sample:
    kib: int
    descriptors: int
    cpu_s: float


def look(process: Process) -> Sample:
    folder = Path(f"/proc/{process.pid}")
    numbers = (folder / "stat").read_text().rpartition(")")[2].split()  # the name may hold anything
    cpu_s = (int(numbers[11]) + int(numbers[12])) / TICKS_PER_S  # in the program and in the kernel
    return Sample(resident_kib(process), len(os.listdir(folder / "fd")), cpu_s)


class Samples:
    """Of every process, one row of a table each."""

    def __init__(self, processes: dict[str, Process], every_s: float) -> None:
        self.rows: list[dict[str, Sample]] = []
        self._processes = processes
        self._every_s = every_s
        self._began = self._last_at = time.monotonic()
        self._last = self._look()
        print("memory in MiB, open descriptors, and processors in use since the line before")
        print("time s".rjust(8), *(name.rjust(22) for name in processes), sep=" | ", flush=True)

    def take_if_due(self) -> None:
        now = time.monotonic()
        if now < self._last_at + self._every_s:
            return
        row = self._look()
        cells = [
            f"{sample.kib / 1024:8.1f} {sample.descriptors:6d} "
            f"{(sample.cpu_s - self._last[name].cpu_s) / (now - self._last_at):6.2f}"
            for name, sample in row.items()
        ]
        print(f"{now - self._began:8.0f}", *cells, sep=" | ", flush=True)
        self.rows.append(row)
        self._last, self._last_at = row, now

    def _look(self) -> dict[str, Sample]:
        return {name: look(process) for name, process in self._processes.items()}

    def growth(self, name: str) -> float:
        """The median memory of the last third of the samples over that of the second third."""
        kib = [row[name].kib for row in self.rows]
        third = len(kib) // 3
        return statistics.median(kib[-third:]) / statistics.median(kib[-2 * third : -third])


class Round:
    """A wavegate-bench for each length."""

    def __init__(self, cluster: Cluster, options: argparse.Namespace, number: int, seconds: float) -> None:
        urls = [part for name in FRONTENDS for part in ("--url", f"http://127.0.0.1:{cluster.port(name)}")]
        self._running = [
            subprocess.Popen(
                [
                    *(str(build_folder() / "tests/wavegate-bench"), *urls, "--check", "--json"),
                    *("--streams", str(max(1, options.streams // len(LENGTHS))), "--seconds", str(seconds)),
                    *("--prompt-tokens", str(prompt), "--max-tokens", str(new)),
                    *("--drop", str(options.drop), "--slow", str(options.slow)),
                    *("--seed", str(options.seed + number * len(LENGTHS) + place)),
                ],
                stdout=subprocess.PIPE,
            )
            for place, (prompt, new) in enumerate(LENGTHS)
        ]

    def runs(self) -> bool:
        return any(process.poll() is None for process in self._running)

    def result(self) -> tuple[Counter[str], list[str]]:
        """How its requests ended, and what was wrong."""
        ends: Counter[str] = Counter()
        wrong = []
        for process in self._running:
            text = process.communicate()[0]
            if process.returncode != 0:
                wrong.append(f"wavegate-bench ended with {process.returncode}: {text.decode()}")
            if text:
                ends.update(dict(leaves(json.loads(text)["ends"])))
        wrong += [
            f"{count} requests ended as {end}"
            for end, count in ends.items()
            if count and end != "ok" and not end.startswith("dropped")
        ]
        return ends, wrong

    def kill(self) -> None:
        for process in self._running:
            process.kill()
            process.wait()


def leaves(counts: dict[str, Any], name: str = "") -> Iterator[tuple[str, int]]:
    for key, value in counts.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{name}{key} ")
        else:
            yield name + key, value


def gauges(status: dict[str, Any]) -> dict[str, int]:
    """Those that are not 0, of all that count what is there now; connections are counted as descriptors."""
    values = {name: status[name] for name in ("in_flight", "buffered_bytes") if name in status}
    for row in status["ranks"]:
        values |= {f"rank {row['rank']} {name}": row[name] for name in ("in_flight", "waiting", "running")}
    return {name: value for name, value in values.items() if value}


def look_idle(cluster: Cluster, idle_descriptors: dict[str, int]) -> list[str]:
    """What is not as it must be with nothing to do. idle_descriptors: as many as each may have."""
    wrong = []
    for name in OURS:
        try:
            cluster.wait_status(name, lambda status: not gauges(status), "gauges of 0")
            cluster.wait_status(
                name,
                lambda status: len(os.listdir(f"/proc/{cluster[name].pid}/fd")) <= idle_descriptors[name],
                f"at most {idle_descriptors[name]} descriptors",
            )
        except AssertionError as fault:
            wrong.append(str(fault))
    return wrong


def soak(cluster: Cluster, options: argparse.Namespace) -> tuple[Samples, list[str]]:
    processes = {name: cluster[name] for name in (*OURS, f"engines 0-{options.ranks - 1}")}
    # An idle process may have a few more than now, which it opens with its first load; a stream left behind in a
    # hundred is far above that.
    idle_descriptors = {name: look(cluster[name]).descriptors + 8 for name in OURS}
    samples = Samples(processes, options.every_s)
    deadline = time.monotonic() + options.minutes * 60
    ends: Counter[str] = Counter()
    wrong: list[str] = []
    number = 0
    while (left_s := deadline - time.monotonic()) > 0 and not wrong:
        running = Round(cluster, options, number, min(options.round_s, max(left_s, 1.0)))
        try:
            while running.runs():
                time.sleep(0.1)
                samples.take_if_due()
        finally:
            running.kill()
        counts, wrong = running.result()
        ends += counts
        wrong += look_idle(cluster, idle_descriptors)
        number += 1
    print(f"{number} rounds, {ends.total()} requests: {dict(ends.most_common())}")
    return samples, wrong


def judge_memory(samples: Samples, sanitized: bool) -> list[str]:
    if len(samples.rows) < 6:
        return [f"{len(samples.rows)} samples are too few to tell whether memory is flat"]
    wrong = []
    for name in OURS:
        growth = samples.growth(name)
        print(f"memory of {name}, last third to second third: {growth:.3f}")
        if growth > MOST_GROWTH and not sanitized:
            wrong.append(f"the memory of {name} grows")
    return wrong


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--streams", type=int, default=2000, help="requests in flight, at both frontends together")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--step-ms", type=int, default=100, help="of the engines: a stream has one token in each")
    parser.add_argument("--drop", type=float, default=0.1, help="fraction of the requests that are left")
    parser.add_argument("--slow", type=float, default=0.02, help="fraction of the requests that are read slowly")
    parser.add_argument("--round-s", type=float, default=120.0, help="between rounds everything must be idle")
    parser.add_argument("--every-s", type=float, default=30.0, help="from one sample to the next")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def main() -> None:
    options = read_options()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    limits = {"max_in_flight": 2 * options.streams, "max_connections": 2 * options.streams + 16}
    every_rank = f"0-{options.ranks - 1}"
    cluster = Cluster(options.ranks, dict.fromkeys(FRONTENDS, every_rank), tcp=True, limits=limits).start()
    try:
        step = ("--step-ms", str(options.step_ms), "--max-num-seqs", str(options.streams))
        cluster.start_fake_engines(every_rank, *step)
        cluster.wait_ready()
        sanitized = is_sanitized(cluster["coordinator"])
        samples, wrong = soak(cluster, options)
    finally:
        cluster.close()
    wrong += judge_memory(samples, sanitized)
    print(*(wrong or ["all is well"]), sep="\n")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
