"""The load of a chaos run: many clients in one thread, each with a request after the other through any frontend. What
came of every request is kept, for `rules` to judge once the run is over and all that was disturbed is known."""

from __future__ import annotations

import errno
import json
import os
import random
import selectors
import socket
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from integration import client
from interop.tokens import expected

HANG_S = 40.0  # longer than any request can take, every fault that may stop it included
RETRY_S = 0.05  # a client whose frontend is gone knocks that often
LONG_TOKENS = 1500  # runs for seconds: what is killed or left in the middle must be aborted at its engine

SUCCESS, LEFT, UNREACHED, CUT, HUNG = "success", "left", "unreached", "cut", "hung"


@dataclass
class Request:
    number: int
    frontend: str
    port: int
    prompt: list[int]
    max_tokens: int
    stream: bool
    pinned: int | None  # the rank that it insists on
    leave_after: int | None  # tokens, after which its client goes away
    begun: float = 0.0  # times are time.monotonic()
    sent: float = 0.0  # 0: not whole
    ended: float = 0.0
    outcome: str = ""  # one of the above, or the code of its error
    message: str = ""
    answer: client.Answer = field(default_factory=client.Answer)
    tokens: list[int] = field(default_factory=list)
    ends: list[str] = field(default_factory=list)  # terminal events: finish reasons, and codes of errors
    wrong: list[str] = field(default_factory=list)
    done_event: bool = False

    def data(self) -> bytes:
        body = client.generate_body(self.prompt, self.max_tokens, stream=self.stream, sampling={"ignore_eos": True})
        headers = [] if self.pinned is None else [("X-data-parallel-rank", str(self.pinned))]
        return client.request_bytes("POST", client.GENERATE, json.dumps(body).encode(), headers)

    def rank(self) -> int | None:
        """The rank that it went to, where that can be known."""
        served = self.answer.headers.get("x-data-parallel-rank")
        return int(served) if served is not None else self.pinned

    def take(self) -> None:
        """Reads what has come of the answer."""
        answer = self.answer
        streams = answer.headers.get("content-type", "").startswith("text/event-stream")
        if answer.status == 200 and streams:
            for event in answer.events():
                self._event(event)
        elif answer.done:
            self._whole(answer.json())

    def close(self, outcome: str, message: str = "") -> None:
        """The one end of it. Tokens must be right in every case, as far as they got."""
        self.ended, self.outcome, self.message = time.monotonic(), outcome, self.message or message
        wanted, reason = expected(self.prompt, self.max_tokens, client.VOCAB_SIZE)
        if self.tokens != wanted[: len(self.tokens)]:
            self.wrong.append("tokens that the engine did not make")
        if len(self.ends) > 1:
            self.wrong.append(f"more than one terminal event: {self.ends}")
        if outcome == SUCCESS and (self.tokens != wanted or self.ends != [reason]):
            self.wrong.append(f"{len(self.tokens)} of {len(wanted)} tokens, ends {self.ends}")
        if outcome == HUNG:
            self.wrong.append(f"no end after {HANG_S} s")

    def finish(self) -> None:
        """The answer is complete."""
        if self.stream and self.answer.status == 200 and not self.done_event:
            self.wrong.append("a stream without [DONE]")
        if not self.ends:
            self.wrong.append(f"a complete answer without a terminal event, status {self.answer.status}")
        end = self.ends[0] if self.ends else "nothing"
        self.close(SUCCESS if end == "length" else end)

    def __str__(self) -> str:
        where = "" if self.rank() is None else f" rank {self.rank()}{'' if self.pinned is None else ' (pinned)'}"
        form = "stream" if self.stream else "whole"
        return (
            f"request {self.number} at {self.frontend}{where}, {form}, {len(self.tokens)} of {self.max_tokens} tokens, "
            f"status {self.answer.status}: {self.outcome} {self.message}"
        )

    def _event(self, event: Any) -> None:
        if self.done_event:
            self.wrong.append(f"an event after [DONE]: {event}")
        elif event == client.DONE:
            self.done_event = True
        elif self.ends:
            self.wrong.append(f"an event after the terminal one: {event}")
        elif "error" in event:
            self._error(event["error"])
        else:
            self._choice(event["choices"][0])

    def _whole(self, document: dict[str, Any]) -> None:
        if "error" in document:
            self._error(document["error"])
        else:
            self._choice(document["choices"][0])

    def _error(self, error: dict[str, Any]) -> None:
        self.ends.append(error["code"])
        self.message = error["message"]

    def _choice(self, choice: dict[str, Any]) -> None:
        self.tokens += choice["token_ids"]
        if choice.get("finish_reason"):
            self.ends.append(choice["finish_reason"])


class Source:
    """Makes the requests: short ones and some of seconds, streams and whole answers, pinned or not, some left early."""

    def __init__(self, seed: int, frontends: dict[str, list[int]]) -> None:
        self._random = random.Random(seed)
        self._frontends = frontends
        self._made = 0

    def next(self, ports: dict[str, int]) -> Request:
        pick = self._random
        name = pick.choice(sorted(ports))
        self._made += 1
        # the long ones are never to end by themselves: whoever began them leaves, or something dies
        is_long = pick.random() < 0.05
        count = LONG_TOKENS if is_long else pick.randint(1, 60)
        return Request(
            number=self._made,
            frontend=name,
            port=ports[name],
            prompt=[self._made % client.VOCAB_SIZE, pick.randrange(client.VOCAB_SIZE), 7],
            max_tokens=count,
            stream=is_long or pick.random() < 0.7,
            pinned=pick.choice(self._frontends[name]) if pick.random() < 0.3 else None,
            leave_after=pick.randint(0, 300) if is_long else pick.randint(0, 20) if pick.random() < 0.1 else None,
        )


class Line:
    """One client: its connection stays open from one request to the next while the frontend allows it."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self.request: Request | None = None
        self.next_at = 0.0
        self._socket: socket.socket | None = None
        self._port = 0
        self._events = 0
        self._unsent = b""

    def begin(self, request: Request) -> None:
        self.request = request
        request.begun = time.monotonic()
        self._unsent = request.data()
        if self._socket and self._port != request.port:
            self.close()
        if not self._socket:
            self._socket = socket.socket()
            self._socket.setblocking(False)
            self._port, self._events = request.port, 0
            code = self._socket.connect_ex((client.HOST, request.port))
            if code not in (0, errno.EINPROGRESS):
                self._end(UNREACHED, os.strerror(code))
                return
        self._want(selectors.EVENT_WRITE)

    def turn(self, events: int) -> None:
        request = self.request
        if request is None:  # idle, and the frontend closes it
            self.close()
            return
        assert self._socket
        try:
            if events & selectors.EVENT_WRITE:
                self._send(request)
                return
            data = self._socket.recv(65536)
        except OSError as error:
            self._broken(request, str(error))
            return
        if not data:
            self._broken(request, "closed")
            return
        request.answer.feed(data)
        request.take()
        if request.answer.done:
            request.finish()
            self._ended(keep=request.answer.keeps_connection)
        elif request.leave_after is not None and request.stream and len(request.tokens) >= request.leave_after:
            self._end(LEFT)

    def tick(self, now: float) -> None:
        request = self.request
        if request and now - request.begun > HANG_S:
            self._end(HUNG)

    def close(self) -> None:
        if self._socket:
            self._want(0)
            self._socket.close()
            self._socket = None

    def _send(self, request: Request) -> None:
        assert self._socket
        self._unsent = self._unsent[self._socket.send(self._unsent) :]
        if not self._unsent:
            request.sent = time.monotonic()
            self._want(selectors.EVENT_READ)

    def _broken(self, request: Request, why: str) -> None:
        self._end(CUT if request.sent else UNREACHED, why)

    def _end(self, outcome: str, message: str = "") -> None:
        assert self.request
        self.request.close(outcome, message)
        self._ended(keep=False)

    def _ended(self, keep: bool) -> None:
        request, self.request = self.request, None
        assert request
        if not keep:
            self.close()
        self.next_at = time.monotonic() + (0.0 if request.outcome in (SUCCESS, LEFT) else RETRY_S)
        self._load.done(request)

    def _want(self, events: int) -> None:
        selector = self._load.selector
        if not events and self._events:
            selector.unregister(self._socket)
        elif events and not self._events:
            selector.register(self._socket, events, self)
        elif events:
            selector.modify(self._socket, events, self)
        self._events = events


class Load(threading.Thread):
    """Runs from `start` to `finish`. `ports` says where each frontend listens, and may change at any time: the last
    known port of one that is gone stays, so that clients knock there in vain."""

    def __init__(self, seed: int, frontends: dict[str, list[int]], ports: dict[str, int], lines: int) -> None:
        super().__init__(name="load", daemon=True)
        self.ports = ports
        self.requests: list[Request] = []  # that have ended
        self.selector = selectors.DefaultSelector()
        self._source = Source(seed, frontends)
        self._lines = [Line(self) for _ in range(lines)]
        self._stopping = threading.Event()
        self._abandoned = threading.Event()
        self._fault: BaseException | None = None

    def run(self) -> None:
        try:
            while not self._stopping.is_set() or any(line.request for line in self._lines):
                if self._abandoned.is_set():
                    break
                self._turn()
            for line in self._lines:
                line.close()
        except BaseException as fault:  # `finish` raises it
            self._fault = fault

    def done(self, request: Request) -> None:
        self.requests.append(request)

    def finish(self) -> list[Request]:
        """Begins nothing more, waits for the ends of what is in flight, and returns all requests."""
        self._stopping.set()
        self.join(HANG_S + 10)
        if self._fault:
            raise self._fault
        assert not self.is_alive(), "the load does not end"
        return self.requests

    def abandon(self) -> None:
        """Ends at once, whatever is in flight."""
        self._abandoned.set()
        self.join(HANG_S)

    def _turn(self) -> None:
        now = time.monotonic()
        for line in self._lines:
            if line.request:
                line.tick(now)
            elif now >= line.next_at and not self._stopping.is_set():
                line.begin(self._source.next(dict(self.ports)))
        for key, events in self.selector.select(0.02):
            if key.fileobj.fileno() >= 0:  # not closed by another event of this turn
                key.data.turn(events)
