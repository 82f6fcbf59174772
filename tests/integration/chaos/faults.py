"""What is done to the processes of a chaos run, and when: a plan that follows from the seed alone, and the record of
what was really done, which `rules` needs to tell a failure that had to be from one that had not."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

HEARTBEAT_TIMEOUT_S = 5.0  # of the clusters under test

KILL, TERM = "kill", "term"  # gone, and started again after `down_s`
PAUSE, STALL, FREEZE = "pause", "stall", "freeze"  # stopped for `stop_s`, then continued
BLINK, PARTITION = "blink", "partition"  # all packets to and from its host are dropped for `stop_s`
PARTITIONS = (BLINK, PARTITION)
GOES_ON = (PAUSE, STALL, FREEZE, *PARTITIONS)
VANISH = "vanish"  # stopped for `stop_s`, then killed: a machine that hangs and is reset

# A pause, a stall and a blink are shorter than the heartbeats' time-out, and no connection may be lost for them. The
# stall is longer than the three seconds after which the coordinator and its frontends call each other silent. What TCP
# sent into a partition comes up to twice as late, so a blink must be short.
STOPS_S = {
    PAUSE: (0.02, 1.0),
    STALL: (3.2, 3.6),
    FREEZE: (6.5, 7.5),
    BLINK: (0.02, 1.0),
    PARTITION: (6.5, 7.5),
    VANISH: (0.02, 7.5),
    KILL: (0, 0),
    TERM: (0, 0),
}
WEIGHTS = {KILL: 8, TERM: 5, PAUSE: 5, STALL: 2, FREEZE: 1, VANISH: 1}
PARTITION_WEIGHTS = {BLINK: 6, PARTITION: 2}  # for things on a host of their own, besides
REDIAL_S = 4.0  # a connection attempt that began in a partition is repeated so long after it at the latest
DOWNS_S = (0.0, 0.0, 0.02, 0.3, 1.5, 4.5)  # at once most often: then the old life's remains are still there
REST_S = 0.2  # from the end of a target's fault to its next


@dataclass(frozen=True)
class Fault:
    at_s: float  # since the beginning of the run
    target: str
    kind: str
    stop_s: float
    down_s: float
    choice: int  # which process, where the target has several

    def __str__(self) -> str:
        stop = f", stopped {self.stop_s:.2f} s" if self.stop_s else ""
        return f"{self.at_s:7.2f} s  {self.kind} {self.target} (#{self.choice}){stop}, down {self.down_s} s"


def plan(seed: int, targets: Sequence[str], count: int, gap_s: float, apart: Collection[str] = ()) -> list[Fault]:
    """That many faults, `gap_s` apart in the mean; a target has one at a time, different ones overlap freely. `apart`
    are those on a host of their own."""
    source = random.Random(seed)
    free_at = dict.fromkeys(targets, 0.0)
    faults: list[Fault] = []
    now = 0.0
    while len(faults) < count:
        now += source.expovariate(1 / gap_s)
        free = [target for target in targets if free_at[target] <= now]
        if not free:
            continue
        target = source.choice(free)
        weights = WEIGHTS | (PARTITION_WEIGHTS if target in apart else {})
        kind = source.choices(list(weights), list(weights.values()))[0]
        stop_s = source.uniform(*STOPS_S[kind])
        down_s = source.choice(DOWNS_S) if kind in (KILL, TERM, VANISH) else 0.0
        choice = source.randrange(1000)
        free_at[target] = now + stop_s + down_s + REST_S
        faults.append(Fault(now, target, kind, stop_s, down_s, choice))
    return faults


def engine(rank: int) -> str:
    """The name in the cluster of the process that plays this rank alone."""
    return f"engines {rank}"


@dataclass
class Interval:
    begin: float  # time.monotonic()
    gone: bool  # not there at all, else stopped
    terminated: bool = False
    end: float = math.inf

    @property
    def length(self) -> float:
        return self.end - self.begin

    def meets(self, begin: float, end: float) -> bool:
        return self.begin <= end and begin <= self.end


@dataclass
class Record:
    """What was really done to each thing: an engine process, a frontend or the coordinator under its name in the
    cluster."""

    intervals: dict[str, list[Interval]] = field(default_factory=dict)
    carried_out: dict[str, int] = field(default_factory=dict)  # by kind and sort of target

    def of(self, thing: str) -> list[Interval]:
        return self.intervals.get(thing, [])

    def count(self, fault: Fault) -> None:
        sort = "frontend" if fault.target.startswith("fe") else fault.target.split()[0]  # engines have a number
        name = f"{fault.kind} {sort}"
        self.carried_out[name] = self.carried_out.get(name, 0) + 1

    @contextmanager
    def disturbed(self, thing: str, *, gone: bool, terminated: bool = False) -> Iterator[Interval]:
        interval = Interval(time.monotonic(), gone, terminated)
        self.intervals.setdefault(thing, []).append(interval)
        yield interval
        interval.end = time.monotonic()
