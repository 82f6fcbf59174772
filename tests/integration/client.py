"""An HTTP client for the tests, on bare sockets: whole answers, event streams that can be left in every way, and
thousands of requests at once from one thread, each token checked."""

import json
import selectors
import socket
import struct
import time
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from interop.tokens import expected

HOST = "127.0.0.1"
PATIENCE = 20.0
GENERATE = "/inference/v1/generate"
COMPLETIONS = "/v1/completions"
VOCAB_SIZE = 32000
DONE = "[DONE]"

Headers = Sequence[tuple[str, str]]


def request_bytes(method: str, path: str, body: bytes | None, headers: Headers = ()) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: test"]
    if body is not None:
        given = {name.lower() for name, _ in headers}
        lines += [] if "content-type" in given else ["Content-Type: application/json"]
        lines += [] if given & {"content-length", "transfer-encoding"} else [f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + (body or b"")


def generate_body(prompt: Sequence[int], max_tokens: int | None = None, **fields: Any) -> dict[str, Any]:
    """A body for /inference/v1/generate. What belongs into sampling_params goes into `sampling`."""
    sampling = fields.pop("sampling", {})
    if max_tokens is not None:
        sampling = {"max_tokens": max_tokens} | sampling
    return {"token_ids": list(prompt), "sampling_params": sampling} | fields


class Answer:
    """One HTTP response, fed as it arrives."""

    def __init__(self) -> None:
        self.status = 0  # until the head is here
        self.headers: dict[str, str] = {}
        self.body = bytearray()
        self.done = False
        self._raw = bytearray()
        self._left: int | None = (
            None  # bytes of the body or of the chunk; None: until the end of the connection
        )
        self._chunked = False
        self._events_from = 0

    def feed(self, data: bytes) -> None:
        self._raw += data
        if not self.status and not self._head():
            return
        if self._chunked:
            self._chunks()
            return
        self.body += self._raw
        self._raw.clear()
        self.done = self._left is not None and len(self.body) >= self._left

    def end(self) -> None:
        """The peer closed. An answer with a length or chunks is then cut short, and not done."""
        if self.status and not self._chunked and self._left is None:
            self.done = True

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def keeps_connection(self) -> bool:
        return self.headers.get("connection", "").lower() != "close"

    def events(self) -> list[Any]:
        """The `data:` events since the last call, parsed, or DONE. Anything but data and comments is an error."""
        found: list[Any] = []
        while (end := self.body.find(b"\n\n", self._events_from)) >= 0:
            for line in self.body[self._events_from : end].decode().split("\n"):
                if line.startswith(":"):
                    continue
                assert line.startswith("data: "), f"not an event: {line!r}"
                text = line.removeprefix("data: ")
                found.append(DONE if text == DONE else json.loads(text))
            self._events_from = end + 2
        return found

    def _head(self) -> bool:
        end = self._raw.find(b"\r\n\r\n")
        if end < 0:
            return False
        first, *lines = self._raw[:end].decode("latin-1").split("\r\n")
        del self._raw[: end + 4]
        self.status = int(first.split(" ")[1])
        if self.status == 100:
            self.status = 0
            return self._head()
        self.headers = {
            name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
        }
        self._chunked = self.headers.get("transfer-encoding", "").lower() == "chunked"
        length = self.headers.get("content-length")
        self._left = None if length is None else int(length)
        return True

    def _chunks(self) -> None:
        while not self.done:
            end = self._raw.find(b"\r\n")
            if end < 0:
                return
            size = int(self._raw[:end].split(b";")[0], 16)
            if len(self._raw) < end + size + 4:
                return
            self.body += self._raw[end + 2 : end + 2 + size]
            del self._raw[: end + size + 4]
            self.done = size == 0


class Connection:
    """One request on a connection of its own."""

    def __init__(self, port: int, data: bytes) -> None:
        self.answer = Answer()
        self.socket = socket.create_connection((HOST, port), PATIENCE)
        self.socket.sendall(data)
        self._events: deque[Any] = deque()

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def read(self) -> bool:
        """Takes what is next. False at the end of the answer or of the connection."""
        data = b"" if self.answer.done else self.socket.recv(65536)
        if data:
            self.answer.feed(data)
        else:
            self.answer.end()
        return bool(data)

    def whole(self) -> Answer:
        while self.read():
            pass
        assert self.answer.done, f"the answer was cut short: {bytes(self.answer.body)!r}"
        return self.answer

    def event(self) -> Any:
        """The next event of the stream, or None at its end."""
        while not self._events:
            more = self.read()
            self._events += self.answer.events()
            if not more and not self._events:
                return None
        return self._events.popleft()

    def events(self) -> list[Any]:
        """All that are left, DONE included."""
        return list(iter(self.event, None))

    def half_close(self) -> None:
        self.socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self.socket.close()

    def reset(self) -> None:
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()


def call(port: int, method: str, path: str, body: bytes | None = None, headers: Headers = ()) -> Answer:
    with Connection(port, request_bytes(method, path, body, headers)) as connection:
        return connection.whole()


def get(port: int, path: str) -> Answer:
    return call(port, "GET", path)


def post(port: int, body: Any, headers: Headers = (), path: str = GENERATE) -> Answer:
    """bytes go as they are, anything else as JSON."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return call(port, "POST", path, data, headers)


def open_post(port: int, body: Any, headers: Headers = (), path: str = GENERATE) -> Connection:
    """Sends a request and leaves the answer to the caller."""
    return Connection(port, request_bytes("POST", path, json.dumps(body).encode(), headers))


def error_of(answer: Answer, status: int, code: str) -> dict[str, Any]:
    """The error object of design.md 5, after checking its form, the HTTP status and the code."""
    text = bytes(answer.body).decode()
    assert answer.status == status, f"{answer.status} instead of {status}: {text}"
    document = answer.json()
    assert document.keys() == {"error"} and document["error"].keys() == {
        "message",
        "type",
        "param",
        "code",
    }, text
    assert document["error"]["code"] == code, text
    return document["error"]


@dataclass
class Job:
    """One generate request among many, and what came of it."""

    port: int
    prompt: list[int]
    max_tokens: int
    stream: bool = True
    headers: list[tuple[str, str]] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    finish_reasons: list[str] = field(default_factory=list)
    answer: Answer | None = None
    faults: list[str] = field(default_factory=list)

    def data(self) -> bytes:
        # EOS is one of the tokens that the function may yield; only some tests are about it
        body = generate_body(self.prompt, self.max_tokens, stream=self.stream, sampling={"ignore_eos": True})
        return request_bytes("POST", GENERATE, json.dumps(body).encode(), self.headers)

    def take(self, answer: Answer) -> None:
        self.answer = answer
        if answer.status not in (0, 200):
            return
        if self.stream:
            for event in answer.events():
                self._event(event)
        elif answer.done:
            self._choice(answer.json()["choices"][0])

    def _event(self, event: Any) -> None:
        if event == DONE:
            if not self.finish_reasons:
                self.faults.append("[DONE] before a finish_reason")
        elif "error" in event:
            self.faults.append(f"error event: {event}")
        elif self.finish_reasons:
            self.faults.append(f"an event after the last one: {event}")
        else:
            self._choice(event["choices"][0])

    def _choice(self, choice: dict[str, Any]) -> None:
        self.tokens += choice["token_ids"]
        if choice.get("finish_reason"):
            self.finish_reasons.append(choice["finish_reason"])

    def fault(self) -> str | None:
        answer = self.answer
        if answer is None or not answer.done or answer.status != 200:
            head = "no answer" if answer is None else f"status {answer.status}, complete: {answer.done}"
            return f"{head}: {'' if answer is None else bytes(answer.body[-300:])!r}"
        tokens, reason = expected(self.prompt, self.max_tokens, VOCAB_SIZE)
        if self.tokens != tokens:
            return f"prompt {self.prompt}: tokens {self.tokens} instead of {tokens}"
        if self.finish_reasons != [reason]:
            return f"prompt {self.prompt}: finish reasons {self.finish_reasons}"
        return "; ".join(self.faults) or None


class _Line:
    """One connection of `run`: a job after the other, while the server keeps it open."""

    def __init__(self, port: int, waiting: deque[Job], selector: selectors.BaseSelector) -> None:
        self.port = port
        self.waiting = waiting
        self.selector = selector
        self.socket: socket.socket | None = None
        self.job: Job | None = None
        self.next()

    def next(self) -> None:
        if not self.waiting:
            self._close()
            return
        self.job = self.waiting.popleft()
        self.answer = Answer()
        self.unsent = self.job.data()
        if self.socket is None:
            self.socket = socket.socket()
            self.socket.setblocking(False)
            self.socket.connect_ex((HOST, self.port))
            self.selector.register(self.socket, selectors.EVENT_WRITE, self)
        else:
            self.selector.modify(self.socket, selectors.EVENT_WRITE, self)

    def turn(self, events: int) -> None:
        assert self.socket and self.job
        try:
            if events & selectors.EVENT_WRITE:
                self.unsent = self.unsent[self.socket.send(self.unsent) :]
                if not self.unsent:
                    self.selector.modify(self.socket, selectors.EVENT_READ, self)
                return
            data = self.socket.recv(65536)
        except OSError as error:
            self.job.faults.append(str(error))
            data = b""
        if data:
            self.answer.feed(data)
        else:
            self.answer.end()
        self.job.take(self.answer)
        if not data or (self.answer.done and not self.answer.keeps_connection):
            self._close()
        if not data or self.answer.done:
            self.job = None
            self.next()

    def _close(self) -> None:
        if self.socket is not None:
            self.selector.unregister(self.socket)
            self.socket.close()
            self.socket = None


def run(jobs: Iterable[Job], connections: int = 10**6, timeout: float = 120.0) -> int:
    """Runs them all, over at most that many connections for each port, and asserts that each is answered right.
    Returns how many at most had begun to be answered and were not through."""
    jobs = list(jobs)
    queues: dict[int, deque[Job]] = {}
    for job in jobs:
        queues.setdefault(job.port, deque()).append(job)
    deadline = time.monotonic() + timeout
    peak, begun, ended = 0, set[int](), 0
    with selectors.DefaultSelector() as selector:
        for port, queue in queues.items():
            for _ in range(min(len(queue), connections)):
                _Line(port, queue, selector)
        while selector.get_map() and time.monotonic() < deadline:
            for key, events in selector.select(1.0):
                line: _Line = key.data
                current = line.job
                line.turn(events)
                if current and current.tokens:
                    begun.add(id(current))
                ended += line.job is not current
            peak = max(peak, len(begun) - ended)
        for key in list(selector.get_map().values()):
            key.data._close()
    faults = [fault for fault in (job.fault() for job in jobs) if fault]
    assert not faults, f"{len(faults)} of {len(jobs)} requests went wrong, e.g. {faults[:3]}"
    return peak
