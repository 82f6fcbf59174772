"""Whether the memory of our processes is back when everything is idle again, after a run in which they served, lost
peers and found them again.

With a sanitizer it tells nothing: what is freed stays in the process, to catch those who still use it. Leaks are
then found at the end of the process, and what is still held, by the gauges of /status."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from integration.cluster import Process, wait_until

# What may have been added: heaps keep gaps, and tables their largest size. In chaos runs of 60 faults it was at
# most 1.3 MiB, most of it in the first seconds; a few thousand requests that leave a kilobyte each are above it.
SPARE_KIB = 4096
SETTLE_S = 5.0


def is_sanitized(process: Process) -> bool:
    return bool(re.search(r"/lib[at]san\.so", Path(f"/proc/{process.pid}/maps").read_text()))


def resident_kib(process: Process) -> int:
    for line in Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Rss:"):
            return int(line.split()[1])
    raise AssertionError(f"{process.name} has no memory: it has ended")


class Memory:
    def __init__(self) -> None:
        self._noted: dict[Process, int] = {}  # in KiB

    def note(self, process: Process) -> None:
        """From here on it counts. For a process that has warmed up, or was just started in the place of another."""
        self._noted[process] = resident_kib(process)

    def check(self, processes: Iterable[Process]) -> None:
        """All noted, alive and idle. Raises what has grown."""
        for process in processes:
            if is_sanitized(process):
                continue
            noted = self._noted[process]
            wait_until(
                lambda: resident_kib(process) <= noted + SPARE_KIB,
                lambda: f"return of {process.name} to its {noted} KiB of memory: it has {resident_kib(process)}",
                SETTLE_S,
            )
