"""Which failures of requests a disturbance excuses. All others are violations: what was not disturbed must serve, and
what was disturbed must serve again GRACE_S after the last disturbance of anything that its return depends on."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import replace

from integration.chaos.faults import HEARTBEAT_TIMEOUT_S, Interval, Record, engine
from integration.chaos.load import CUT, HUNG, LEFT, SUCCESS, UNREACHED, Request

GRACE_S = 4.0
COORDINATOR = "coordinator"
# Stops from this length on may cost a connection: heartbeats end it between the time-out and one probe more, measured
# on a machine that is busy.
BREAKING_S = HEARTBEAT_TIMEOUT_S - 1.0
HEARTBEAT_S = 1.0  # after which both ends have heard each other, if neither is stopped
SILENCE_S = 2.0  # a second before the frontends call the coordinator silent
SENTINEL_S = 1.5  # for a second an announced death passes for that of any rank
READ_S = 1.0  # a frontend that runs has read a request by then


class Rules:
    """frontends: the ranks of each. lockstep: the ranks fail as one."""

    def __init__(self, record: Record, frontends: dict[str, list[int]], lockstep: bool) -> None:
        self._record = record
        self._frontends = frontends
        self._lockstep = lockstep
        self._served: dict[tuple[str, int | None], list[tuple[float, float]]] = {}  # see `learn`
        self._ranks = sorted({rank for ranks in frontends.values() for rank in ranks})

    def learn(self, requests: Iterable[Request]) -> None:
        """All of the run, before any is judged: successes tell what had recovered by then. Kept is, of each frontend
        with each rank, when they began, in order, and when the first of those that began then or later ended."""
        for request in sorted(requests, key=lambda request: request.begun, reverse=True):
            for rank in (None, request.rank()) if request.outcome == SUCCESS else ():
                rows = self._served.setdefault((request.frontend, rank), [])
                rows.append((request.begun, min([request.ended, *(ended for _, ended in rows[-1:])])))
        for rows in self._served.values():
            rows.reverse()

    def violation(self, request: Request) -> str | None:
        """What is wrong with the end of the request."""
        if request.wrong:
            return "; ".join(request.wrong)
        return None if self._excused(request) else "nothing excuses this end"

    def cause(self, request: Request) -> float | None:
        """When the engine of a failed request died, for the time that it took to be told: only where that was the one
        thing that happened."""
        rank = _rank_of(request)
        if request.outcome not in ("dispatcher_closed", "engine_core_dead", "request_stream_closed") or rank is None:
            return None
        met = [i for i in self._record.of(engine(rank)) if i.meets(request.begun, request.ended)]
        others = [*self._record.of(request.frontend), *self._record.of(COORDINATOR)]
        if len(met) != 1 or not met[0].gone or any(i.meets(request.begun, request.ended) for i in others):
            return None
        return met[0].begin if met[0].begin >= request.begun else None

    # --- by outcome ---

    def _excused(self, request: Request) -> bool:
        outcome = request.outcome
        if outcome in (SUCCESS, LEFT):
            return True
        if outcome == HUNG:
            return False
        if outcome == UNREACHED:
            return any(i.meets(request.begun, request.ended) for i in self._gone(request.frontend))
        if outcome == CUT:
            return self._may_be_cut(request)
        if outcome == "draining":
            ends = (i for i in self._gone(request.frontend) if i.terminated)
            return any(i.meets(request.begun, request.ended) for i in ends)
        if outcome in ("dispatcher_closed", "request_stream_closed"):
            return self._lost(request)
        if outcome == "engine_core_dead":
            return self._lost(request) and self._announced(request)
        if outcome == "no_rank_ready":
            return self._none_ready(request)
        if outcome == "control_closed":
            return self._lockstep and self._nobody_wakes(request)
        return False

    def _may_be_cut(self, request: Request) -> bool:
        """A killed frontend cuts all. One that is terminated ends what it has read with a terminal event."""
        for interval in self._gone(request.frontend):
            if not interval.meets(request.begun, request.ended):
                continue
            stops = (i for i in self._record.of(request.frontend) if not i.gone)
            unread = interval.begin - request.sent < READ_S or any(i.meets(request.sent, interval.begin) for i in stops)
            if not interval.terminated or (unread and not request.answer.status):
                return True
        return False

    def _lost(self, request: Request) -> bool:
        return any(self._rank_recovering(request, rank) for rank in self._depends_on(request))

    def _announced(self, request: Request) -> bool:
        """The announcement names nobody, so for a while it passes for that of any rank that is lost. A frontend that is
        stopped reads it later."""
        stops = [i for i in self._record.of(request.frontend) if not i.gone]
        for rank in self._ranks:
            for dying in filter(lambda i: i.terminated, self._record.of(engine(rank))):
                read = max((i.end for i in stops if i.meets(dying.begin, dying.end)), default=dying.end)
                if dying.begin <= request.ended and request.begun <= read + SENTINEL_S:
                    return True
        return False

    def _none_ready(self, request: Request) -> bool:
        down = [self._rank_recovering(request, rank) for rank in self._depends_on(request)]
        return any(down) if self._lockstep or request.pinned is not None else all(down)

    def _nobody_wakes(self, request: Request) -> bool:
        frontend = request.frontend
        if self._meets(request, self._breaks(frontend), lambda i: self._recovered(i, [frontend])):
            return True
        silent = (i for i in self._record.of(COORDINATOR) if i.gone or i.length >= SILENCE_S)
        return self._meets(request, silent, lambda i: self._recovered(i, [COORDINATOR]))

    # --- what was disturbed ---

    def _depends_on(self, request: Request) -> list[int]:
        rank = _rank_of(request)
        if self._lockstep:
            return self._ranks
        return self._frontends[request.frontend] if rank is None else [rank]

    def _gone(self, thing: str) -> Iterable[Interval]:
        return (i for i in self._record.of(thing) if i.gone)

    def _breaks(self, thing: str) -> Iterable[Interval]:
        return (i for i in self._record.of(thing) if i.gone or i.length >= BREAKING_S)

    def _meets(
        self, request: Request, intervals: Iterable[Interval], recovered: Callable[[Interval], float]
    ) -> bool:
        return any(i.begin <= request.ended and request.begun <= recovered(i) for i in intervals)

    def _rank_recovering(self, request: Request, rank: int) -> bool:
        """Whether the frontend and the rank may have not found each other again."""
        things = [engine(rank), request.frontend]
        reached = rank if rank in self._frontends[request.frontend] else None  # of its group, it may reach a part only
        served = self._served.get((request.frontend, reached), [])

        def recovered(interval: Interval) -> float:
            place = bisect_right(served, (interval.end, math.inf))  # what has served since has recovered
            return min([self._recovered(interval, things), *(ended for _, ended in served[place : place + 1])])

        breaks = [*self._breaks(things[0]), *self._breaks(things[1]), *self._silences(things)]
        return self._meets(request, breaks, recovered)

    def _silences(self, things: Iterable[str]) -> Iterable[Interval]:
        """Stops of both ends of a connection, one after the other, that together may cost it."""
        stops = sorted((i for thing in things for i in self._record.of(thing) if not i.gone), key=lambda i: i.begin)
        joined: list[Interval] = []
        for stop in stops:
            if joined and stop.begin <= joined[-1].end + HEARTBEAT_S:
                joined[-1] = replace(joined[-1], end=max(joined[-1].end, stop.end))
            else:
                joined.append(stop)
        return (i for i in joined if i.length >= BREAKING_S)

    def _recovered(self, interval: Interval, things: Iterable[str]) -> float:
        """When all is well again at the latest. A recovery that is disturbed in its turn begins again."""
        others = [i for thing in {*things, COORDINATOR} for i in self._record.of(thing)]
        end = interval.end + GRACE_S
        while (later := max((i.end + GRACE_S for i in others if i.meets(interval.begin, end)), default=end)) > end:
            end = later
        return end


def _rank_of(request: Request) -> int | None:
    named = re.search(r"\brank (\d+)", request.message)
    return int(named[1]) if named and request.outcome != "no_rank_ready" else request.rank()
