"""A chaos run: load, and faults at the processes that serve it, then a strict look at everything.

The plan of faults follows from the seed, so a violation prints how to run it again; what the machine does in between
does not, so it may take several runs. A `target` of the plan is a frontend, the coordinator, an engine of independent
ranks, or all engines of a lockstep group: of these one is hit, and when it dies, the driver does what a supervisor
would, and ends and starts them all."""

from __future__ import annotations

import heapq
import os
import signal
import statistics
import time
from collections import Counter
from collections.abc import Generator
from contextlib import ExitStack, nullcontext, suppress
from pathlib import Path

from integration import client
from integration.chaos.faults import (
    GOES_ON,
    KILL,
    PARTITION,
    PARTITIONS,
    REDIAL_S,
    REST_S,
    TERM,
    Fault,
    Record,
    engine,
    plan,
)
from integration.chaos.load import LEFT, SUCCESS, Load, Request
from integration.chaos.memory import Memory
from integration.chaos.rules import COORDINATOR, GRACE_S, HEARTBEAT_S, Rules
from integration.cluster import Cluster, Process, rank_row, wait_until
from integration.hosts import Network

HOSTS = "abcdefgh"  # everything but the engines is on the first, and rank 0 on the second
GROUP = "group"  # the target that is all engines of a lockstep group
LINES = 24
LOOK_S = 0.05  # at most so long after a process ended by itself it is noticed
GAP_S = 0.45
STEP_MS = "5"
KEPT_PROCESSES = 60  # the logs of those that ended before are dropped
ORPHANS_S = 5.0  # after which no engine may still work for a client that is gone
EXIT_COLLECTIVE = 7  # a rank of a lockstep group that waited too long for one that died

Steps = Generator[float, None, None]  # a fault as it goes on: each value is how long to wait


class Chaos:
    """cluster: started, and every rank ready, each played by a process of its own (start_engine). network: each rank
    has a host of its own there, and may be cut off."""

    def __init__(
        self, cluster: Cluster, seed: int, count: int, *, lockstep: bool, network: Network | None = None
    ) -> None:
        self._cluster = cluster
        self._network = network
        self._lockstep = lockstep
        self._seed = seed
        self._frontends = {name: served_ranks(text) for name, text in cluster.frontends.items()}
        self._engines = [engine(rank) for rank in range(cluster.ranks)]
        self._things = [*self._frontends, COORDINATOR, *self._engines]
        self._targets = [*self._frontends, COORDINATOR, *([GROUP] if lockstep else self._engines)]
        self._plan = plan(seed, self._targets, count, GAP_S, self._engines if network else ())
        self._record = Record()
        self._rules = Rules(self._record, self._frontends, lockstep)
        self._problems: list[str] = []
        self._gone: set[str] = set()  # things that are not there, or are about to end
        self._descriptors = self._all_connected()
        self._memory = Memory()
        for name in self._descriptors:
            self._memory.note(cluster[name])
        self._began = 0.0

    def run(self) -> None:
        """Raises everything that was wrong, with what it takes to run it again."""
        ports = {name: self._cluster.port(name) for name in self._frontends}
        load = self._load = Load(self._seed + 1, self._frontends, ports, LINES)
        self._began = time.monotonic()
        load.start()
        try:
            self._carry_out()
        except AssertionError as fault:
            self._problem(str(fault))
            load.abandon()
        else:
            time.sleep(GRACE_S)  # of load, for which nothing is excused at its end
            requests = load.finish()
            self._judge(requests)
            self._look_at_everything()
            print(self._summary(requests))
        assert not self._problems, self._report()

    # --- faults ---

    def _carry_out(self) -> None:
        """Every fault at its time, or when its target is through with the one before."""
        workers = [self._work(target) for target in self._targets]
        due = [(self._began, place) for place in range(len(workers))]
        while due:
            at, place = due[0]
            time.sleep(min(LOOK_S, max(0.0, at - time.monotonic())))
            self._notice_deaths()
            if at > time.monotonic():
                continue
            heapq.heappop(due)
            wait_s = next(workers[place], None)
            if wait_s is not None:
                heapq.heappush(due, (time.monotonic() + wait_s, place))

    def _work(self, target: str) -> Steps:
        for fault in self._plan:
            if fault.target != target:
                continue
            yield max(0.0, self._began + fault.at_s - time.monotonic())
            self._record.count(fault)
            if target == GROUP:
                yield from self._hit_group(fault, fault.choice % self._cluster.ranks)
            else:
                yield from self._hit(fault, target)
            yield REST_S

    def _hit(self, fault: Fault, thing: str) -> Steps:
        if fault.kind in PARTITIONS:
            yield from self._cut_off(fault, thing)
            return
        if fault.kind in GOES_ON:
            yield from self._stop(fault, thing)
            return
        yield from self._stop(fault, thing)
        with self._record.disturbed(thing, gone=True, terminated=fault.kind == TERM):
            yield from self._end(thing, fault.kind)
            yield fault.down_s
            yield from self._start(thing)

    def _hit_group(self, fault: Fault, rank: int) -> Steps:
        yield from self._stop(fault, engine(rank))
        if fault.kind in GOES_ON:
            return
        self._gone |= {*self._engines}
        for name in self._engines:  # without the others a rank ends by itself, sooner or later
            self._cluster[name].may_end_with |= {EXIT_COLLECTIVE}
        with ExitStack() as stack:
            for name in self._engines:
                announces = fault.kind == TERM and name == engine(rank)
                stack.enter_context(self._record.disturbed(name, gone=True, terminated=announces))
            yield from self._end(engine(rank), fault.kind)
            yield fault.down_s  # how long the supervisor takes
            for name in self._engines:
                yield from self._end(name, KILL)
            for name in self._engines:
                yield from self._start(name)

    def _stop(self, fault: Fault, thing: str) -> Steps:
        if not fault.stop_s:
            return
        with self._record.disturbed(thing, gone=False):
            self._cluster[thing].signal(signal.SIGSTOP)
            yield fault.stop_s
            if fault.kind in GOES_ON:
                self._cluster[thing].signal(signal.SIGCONT)

    def _cut_off(self, fault: Fault, thing: str) -> Steps:
        assert self._network
        host = host_of(self._engines.index(thing))
        while self._has_strangers(thing):
            yield LOOK_S
        with self._record.disturbed(thing, gone=False):
            self._network.partition(host)
            yield fault.stop_s
            self._network.heal(host)
            if fault.kind == PARTITION:
                yield REDIAL_S

    def _has_strangers(self, name: str) -> bool:
        """Whether the engine may have a connection over which nothing has come yet. If its peer dies while it is cut
        off, only TCP's own repetitions end that one, and they may take longer than the partition did: engines have no
        time-outs of their own, and get ours with the first heartbeat."""
        ours = [i for thing in (*self._frontends, COORDINATOR, name) for i in self._record.of(thing)]
        return any(i.end > time.monotonic() - (HEARTBEAT_S if i.gone else 0.0) for i in ours)

    def _end(self, thing: str, kind: str) -> Steps:
        """Until the process is gone; it may be already."""
        process = self._cluster[thing]
        self._gone.add(thing)
        if kind != TERM:
            process.may_end_with |= {-signal.SIGKILL}
        elif thing in self._engines:
            process.may_end_with |= {-signal.SIGTERM}  # it may have just begun, and not watch signals yet
        process.signal(signal.SIGTERM if kind == TERM else signal.SIGKILL)
        deadline = time.monotonic() + GRACE_S
        while process.alive:
            yield 0.005
            if time.monotonic() > deadline:
                self._problem(f"{thing} does not end on {kind}")
                process.kill()
        process.wait_exit()

    def _start(self, thing: str) -> Steps:
        """Until the process listens. An engine has nothing to wait for: its clients will tell when it is there."""
        if thing in self._engines:
            start_engine(self._cluster, self._engines.index(thing), self._network)
        else:
            process = self._cluster.start_coordinator() if thing == COORDINATOR else self._cluster.start_frontend(thing)
            while process.alive and "http=" not in process.log:
                yield 0.01
            process.http_port()
            self._memory.note(process)
        self._gone.discard(thing)
        self._forget_old_processes()

    def _forget_old_processes(self) -> None:
        processes = self._cluster.processes
        for process in [process for process in processes[:-KEPT_PROCESSES] if not process.alive]:
            processes.remove(process)
            for fault in process.faults():
                self._problem(fault)

    def _notice_deaths(self) -> None:
        for thing in self._things:
            if thing not in self._gone and not self._cluster[thing].alive:
                code = self._cluster[thing].wait_exit()
                raise AssertionError(f"{thing} ended by itself with {code}; what comes after is of no account")

    # --- afterwards ---

    def _judge(self, requests: list[Request]) -> None:
        self._rules.learn(requests)
        for request in requests:
            why = self._rules.violation(request)
            if why:
                self._problem(f"{why}: {request}", request.begun, request.ended)

    def _look_at_everything(self) -> None:
        checks = [self._idle, self._nobody_works, self._all_serve, self._books]
        for check in (*checks, self._no_descriptors_lost, self._memory_is_back):
            try:
                check()
            except AssertionError as fault:
                self._problem(f"after the run: {fault}")

    def _idle(self) -> None:
        self._cluster.wait_ready()
        self._cluster.wait_idle()

    def _nobody_works(self) -> None:
        """What dead frontends and clients that left had begun is aborted; a lockstep group pauses."""

        def nobody() -> bool:
            status = self._cluster.status(COORDINATOR)
            busy = any(rank_row(status, rank)["running"] for rank in range(self._cluster.ranks))
            return not busy and not status["engines_running"]

        wait_until(nobody, lambda: f"rest of the engines: {self._cluster.status(COORDINATOR)}", ORPHANS_S)

    def _all_serve(self) -> None:
        """Every rank through every frontend."""
        jobs = [
            client.Job(self._cluster.port(name), [rank, 1], 4, headers=[("X-data-parallel-rank", str(rank))])
            for name, ranks in self._frontends.items()
            for rank in ranks
        ]
        client.run(jobs, timeout=GRACE_S)
        self._cluster.wait_idle()

    def _all_connected(self) -> dict[str, list[str]]:
        """What the coordinator and the frontends have open when everybody has reached everybody."""
        self._all_serve()
        for name in self._frontends:
            self._cluster.wait_status(name, lambda s: s["coordinator"]["publish_age_ms"] is not None, "a publish")
        return {name: descriptors(self._cluster[name]) for name in (*self._frontends, COORDINATOR)}

    def _books(self) -> None:
        """Every request that a frontend has accepted has ended, once."""
        for name in self._frontends:
            counters = self._cluster.status(name)["counters"]
            ended = sum(counters["ended"].values())
            assert counters["accepted"] == ended, f"{name} accepted {counters['accepted']}, and {ended} ended"

    def _no_descriptors_lost(self) -> None:
        for name, before in self._descriptors.items():
            deadline = time.monotonic() + GRACE_S
            while len(descriptors(self._cluster[name])) > len(before):
                assert time.monotonic() < deadline, (
                    f"{name} has more descriptors than at first: {Counter(descriptors(self._cluster[name]))}, "
                    f"{Counter(before)}"
                )
                time.sleep(LOOK_S)

    def _memory_is_back(self) -> None:
        self._memory.check(self._cluster[name] for name in self._descriptors)

    # --- telling ---

    def _problem(self, text: str, begun: float | None = None, ended: float | None = None) -> None:
        ended = time.monotonic() if ended is None else ended
        begun = ended if begun is None else begun
        clock = time.strftime("%H:%M:%S", time.localtime(time.time() - time.monotonic() + ended))
        self._problems.append(f"{begun - self._began:8.3f} to {ended - self._began:.3f} s ({clock}) {text}")

    def _done(self) -> str:
        """What was really done, in order."""
        rows = sorted(
            (interval.begin, f"{'gone' if interval.gone else 'stopped'} {thing}", interval.end)
            for thing, intervals in self._record.intervals.items()
            for interval in intervals
        )
        return "\n".join(f"{a - self._began:8.3f} to {b - self._began:8.3f} s {what}" for a, what, b in rows)

    def _summary(self, requests: list[Request]) -> str:
        outcomes = Counter(request.outcome for request in requests)
        wrong = sum(1 for request in requests if self._rules.violation(request))
        told = [
            (request.ended - cause) * 1000
            for request in requests
            if (cause := self._rules.cause(request)) is not None
        ]
        failed = len(requests) - outcomes[SUCCESS] - outcomes[LEFT] - wrong
        return (
            f"seed {self._seed}, lockstep {self._lockstep}: {sum(self._record.carried_out.values())} faults "
            f"{dict(sorted(self._record.carried_out.items()))}; "
            f"{len(requests)} requests {dict(outcomes.most_common())}; "
            f"failed as they should {failed}, wrongly {wrong}; told of a dead engine after "
            + (f"{statistics.median(told):.0f} ms in the median of {len(told)}" if told else "nothing: none was")
        )

    def _report(self) -> str:
        replay = f"WG_SEED={self._seed} WG_CHAOS_FAULTS={len(self._plan)}"
        test = os.environ.get("PYTEST_CURRENT_TEST", "integration/test_chaos.py").split(" ")[0]
        return (
            f"{len(self._problems)} violations; to run it again: {replay} pytest {test}\n"
            + "\n".join(sorted(self._problems)[:40])
            + "\n--- the plan\n"
            + "\n".join(map(str, self._plan))
            + "\n--- what was done\n"
            + self._done()
        )


def served_ranks(text: str) -> list[int]:
    """Of "0-2" or "1"."""
    first, _, last = text.partition("-")
    return list(range(int(first), int(last or first) + 1))


def host_of(rank: int) -> str:
    return HOSTS[rank + 1]


def start_engine(cluster: Cluster, rank: int, network: Network | None = None) -> Process:
    with network.inside(host_of(rank)) if network else nullcontext():
        return cluster.start_fake_engines(str(rank), "--step-ms", STEP_MS, "--dead-on-term")


def descriptors(process: Process) -> list[str]:
    """The kinds of what it has open."""
    kinds: list[str] = []
    for entry in Path(f"/proc/{process._process.pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            kinds.append(os.readlink(entry).split(":")[0])
    return kinds
