"""A thousand streams at once against engines that follow random scripts: outputs of 0 to 16 tokens, every kind of end,
also the engine's own. What each client gets is its script, exactly, and one truthful end (B082, B083, B087). Half of
the clients are slow: they pause, then read in small pieces, so that what waits for them is merged.

WG_SEED chooses the scripts."""

import heapq
import itertools
import json
import os
import random
import selectors
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from integration import client
from integration.cluster import Cluster, wait_until
from integration.conftest import NewCluster
from interop import messages as wire
from interop.answers import Step
from interop.tensors import row
from interop.tokens import TokenSource

SEED = int(os.environ.get("WG_SEED", "1"))
STREAMS = 1000
RANKS = 4
DYING_RANK = 3  # in one of the tests
SLOW_BYTES = 2048  # what a slow reader takes at a time
PAUSES = (0.0, 0.5, 1.5)  # seconds until a slow reader begins
TOP = 2
MOST_TOKENS = 16  # of one output, and so of one event but where outputs were merged

REASONS = {wire.FINISH_STOP: "stop", wire.FINISH_LENGTH: "length", wire.FINISH_REPETITION: "repetition"}
ERRORS = {
    wire.FINISH_ABORT: "request_aborted",
    wire.FINISH_ERROR: "engine_request_error",
    None: "request_stream_closed",  # only named as finished
}
CAUSES = REASONS | {wire.FINISH_ABORT: "abort", wire.FINISH_ERROR: "error", None: "stream_closed"}  # in /status


@dataclass
class Plan:
    prompt: list[int]
    steps: list[Step]
    logprobs: bool
    usage: bool
    rank: int | None = None  # pinned to it

    @property
    def tokens(self) -> list[int]:
        source = TokenSource(self.prompt, client.VOCAB_SIZE)
        return [source[i] for i in range(sum(step.tokens for step in self.steps))]

    @property
    def finish(self) -> int | None:
        return self.steps[-1].finish

    def request(self) -> bytes:
        count = len(self.tokens) if self.finish == wire.FINISH_LENGTH else len(self.tokens) + 5
        sampling: dict[str, Any] = {"max_tokens": max(count, 1), "ignore_eos": True}
        if self.logprobs:
            sampling["logprobs"] = TOP
        body: dict[str, Any] = {"token_ids": self.prompt, "sampling_params": sampling, "stream": True}
        if self.usage:
            body["stream_options"] = {"include_usage": True}
        if self.rank is not None:
            body["data_parallel_rank"] = self.rank
        return client.request_bytes("POST", client.GENERATE, json.dumps(body).encode())


def make_plan(source: random.Random, number: int) -> Plan:
    steps = [Step(source.randint(0, MOST_TOKENS)) for _ in range(source.choice([0, 1, 5, 30, 60]))]
    finish = source.choice([*REASONS, *ERRORS])
    if finish is None:
        steps.append(Step(0, named_only=True))
    else:
        least = 1 if finish == wire.FINISH_LENGTH else 0
        last = Step(source.randint(least, MOST_TOKENS), finish)
        if finish == wire.FINISH_STOP:
            last.stop_reason = source.choice([None, 5, "end", "\u00fc"])
        steps.append(last)
    return Plan([number, 2, 3], steps, source.random() < 0.5, source.random() < 0.5)


@dataclass
class Reader:
    plan: Plan
    slow: bool
    socket: socket.socket
    answer: client.Answer = field(default_factory=client.Answer)
    events: list[Any] = field(default_factory=list)
    reads: int = 0

    def read(self) -> bool:
        data = self.socket.recv(SLOW_BYTES if self.slow else 65536)
        self.reads += 1
        if data:
            self.answer.feed(data)
        if self.answer.status == 200 and self.answer.headers["content-type"].startswith("text/event-stream"):
            self.events += self.answer.events()
        return bool(data) and not self.answer.done

    @property
    def tokens(self) -> list[int]:
        return [token for choice in self.choices for token in choice["token_ids"]]

    @property
    def choices(self) -> list[dict[str, Any]]:
        found = [event["choices"] for event in self.events if event != client.DONE]
        return [choice for choices in found for choice in choices]

    @property
    def was_merged(self) -> bool:
        return any(len(choice["token_ids"]) > MOST_TOKENS for choice in self.choices)

    def check(self) -> None:
        """Everything that there is to know of the end."""
        assert self.answer.done, "the answer was cut short"
        plan = self.plan
        if plan.finish in REASONS:
            self._check_end(REASONS[plan.finish])
        else:
            self._check_failure(ERRORS[plan.finish])
        assert self.tokens == plan.tokens

    def check_cut(self, code: str) -> None:
        """The engine was lost on the way: what came before is right, and the end says so."""
        assert self.answer.done, "the answer was cut short"
        self._check_failure(code)
        assert self.tokens == self.plan.tokens[: len(self.tokens)]

    def _check_end(self, reason: str) -> None:
        assert self.answer.status == 200, bytes(self.answer.body)
        if self.plan.usage:
            self._check_usage(self.events.pop(-2))
        *events, last, done = self.events
        assert done == client.DONE and client.DONE not in [*events, last]
        assert last["choices"][0]["finish_reason"] == reason
        assert not any("error" in event or "finish_reason" in event["choices"][0] for event in events)
        self._check_logprobs()

    def _check_failure(self, code: str) -> None:
        if self.answer.status != 200:  # nothing had been sent when it failed
            assert self.answer.status in (499, 500, 503)
            assert self.answer.json()["error"]["code"] == code
            return
        *events, error, done = self.events
        assert done == client.DONE and client.DONE not in events
        assert error["error"]["code"] == code
        self.events = events
        assert not any("error" in event or "finish_reason" in event["choices"][0] for event in events)
        self._check_logprobs()

    def _check_usage(self, event: dict[str, Any]) -> None:
        count = len(self.plan.tokens)
        assert event["choices"] == []
        assert event["usage"] == {"prompt_tokens": 3, "completion_tokens": count, "total_tokens": 3 + count}

    def _check_logprobs(self) -> None:
        place = 0
        for choice in self.choices:
            assert ("logprobs" in choice) == self.plan.logprobs
            if not self.plan.logprobs:
                continue
            for token, entry in zip(choice["token_ids"], choice["logprobs"]["content"], strict=True):
                wanted = row(token, place, TOP, client.VOCAB_SIZE).shown(TOP)
                shown = [(int(top["token"].removeprefix("token_id:")), top["logprob"]) for top in entry["top_logprobs"]]
                assert entry["token"] == f"token_id:{token}" and shown == wanted
                place += 1


def dial(port: int, plan: Plan, slow: bool) -> Reader:
    connection = socket.socket()
    if slow:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    connection.connect((client.HOST, port))
    connection.sendall(plan.request())
    connection.setblocking(False)
    return Reader(plan, slow, connection)


def read_all(readers: list[Reader]) -> None:
    """Slow readers begin after a pause, and make one again after every few reads."""
    turn = itertools.count()  # so that the heap never compares readers
    now = time.monotonic()
    pausing = [(now + (PAUSES[i % 3] if reader.slow else 0), next(turn), reader) for i, reader in enumerate(readers)]
    heapq.heapify(pausing)
    with selectors.DefaultSelector() as selector:
        while pausing or selector.get_map():
            while pausing and pausing[0][0] <= time.monotonic():
                reader = heapq.heappop(pausing)[2]
                selector.register(reader.socket, selectors.EVENT_READ, reader)
            ready = selector.select(0.01 if pausing else client.PATIENCE)
            assert ready or pausing, f"{len(selector.get_map())} streams hang"
            for key, _ in ready:
                reader = key.data
                goes_on = reader.read()
                if not goes_on:
                    selector.unregister(reader.socket)
                    reader.socket.close()
                elif reader.slow and reader.reads % 8 == 0:
                    selector.unregister(reader.socket)
                    heapq.heappush(pausing, (time.monotonic() + 0.02, next(turn), reader))


def play(cluster: Cluster, plans: list[Plan]) -> list[Reader]:
    """All at once: the engines begin when they have every request. A plan's number is the first id of its prompt."""

    def script(add: wire.EngineCoreRequest) -> list[Step]:
        return list(plans[add.prompt_token_ids[0]].steps)

    for rank in range(RANKS):
        names = "torch" if rank % 2 else "numpy"
        cluster.start_engine(rank, script=script, tensor_names=names, withhold=True)
    cluster.wait_ready()
    readers = [dial(cluster.port(), plan, number % 2 == 0) for number, plan in enumerate(plans)]
    cluster.wait_status("fe0", lambda status: status["in_flight"] == len(plans), "all in flight")
    wait_until(lambda: sum(len(engine.added) for engine in cluster.engines) == len(plans), "every ADD")
    for engine in cluster.engines:
        engine.withhold(False)
    read_all(readers)
    return readers


def ends_with(reader: Reader, code: str) -> bool:
    last = reader.answer.json() if reader.answer.status != 200 else (reader.events or [None])[-2]
    return bool(last) and last.get("error", {}).get("code") == code


@contextmanager
def told(number: int, reader: Reader) -> Iterator[None]:
    """Says which stream it was, if anything is wrong with it."""
    try:
        yield
    except Exception as fault:
        raise AssertionError(f"seed {SEED}, stream {number}: {fault!r}; {reader.events[-3:]}") from fault


def test_every_stream_is_its_script_and_has_one_end(new_cluster: NewCluster) -> None:
    source = random.Random(SEED)
    plans = [make_plan(source, number) for number in range(STREAMS)]
    cluster = new_cluster(RANKS).start()
    readers = play(cluster, plans)
    for number, reader in enumerate(readers):
        with told(number, reader):
            reader.check()
    assert sum(reader.was_merged for reader in readers if reader.slow) > STREAMS // 100, "nothing was merged"
    assert all(len(engine.added) > STREAMS // 10 for engine in cluster.engines), "a rank was hardly used"
    cluster.wait_idle()
    ended = cluster.status()["counters"]["ended"]
    wanted = dict.fromkeys(CAUSES.values(), 0)
    for plan in plans:
        wanted[CAUSES[plan.finish]] += 1
    assert {name: ended[name] for name in wanted} == wanted
    assert sum(ended.values()) == STREAMS


def test_an_engine_that_dies_ends_its_own_streams_and_no_other(new_cluster: NewCluster) -> None:
    source = random.Random(SEED)
    plans = [make_plan(source, number) for number in range(STREAMS // 2)]
    for number, plan in enumerate(plans):
        plan.rank = number % RANKS
    plans[DYING_RANK].steps = [Step(4)] * 20 + [Step(0, dies=True)]
    cluster = new_cluster(RANKS).start()
    readers = play(cluster, plans)
    cut = 0
    for number, reader in enumerate(readers):
        with told(number, reader):
            if reader.plan.rank == DYING_RANK and ends_with(reader, "dispatcher_closed"):
                reader.check_cut("dispatcher_closed")
                cut += 1
            else:
                assert number != DYING_RANK, "the one that kills the engine cannot end well"
                reader.check()
    assert cut > STREAMS // 50
    served = cluster.status()
    assert {row["rank"] for row in served["ranks"] if row["state"] == "ready"} == {*range(RANKS)} - {DYING_RANK}
    cluster.wait_idle()
