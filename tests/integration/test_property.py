"""A thousand streams at once against engines that follow random scripts: outputs of 0 to 16 tokens, every kind of end.
What each client gets is its script, exactly, and one truthful end (B082, B083, B087). Every third client reads
slowly, so that what waits for it is merged.

WG_SEED chooses the scripts."""

import json
import os
import random
import selectors
import socket
from dataclasses import dataclass, field
from typing import Any

from integration import client
from integration.cluster import Cluster
from integration.conftest import NewCluster
from interop import messages as wire
from interop.engine import Step
from interop.tensors import row
from interop.tokens import TokenSource

SEED = int(os.environ.get("WG_SEED", "1"))
STREAMS = 1000
RANKS = 4
SLOW_BYTES = 512  # what a slow reader takes at a time
TOP = 2

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
        return client.request_bytes("POST", client.GENERATE, json.dumps(body).encode())


def make_plan(source: random.Random, number: int) -> Plan:
    steps = [Step(source.randint(0, 16)) for _ in range(source.choice([0, 1, 5, 30, 60]))]
    finish = source.choice([*REASONS, *ERRORS])
    if finish is None:
        steps.append(Step(0, named_only=True))
    else:
        steps.append(Step(source.randint(1, 16) if finish == wire.FINISH_LENGTH else source.randint(0, 16), finish))
    return Plan([number, 2, 3], steps, source.random() < 0.5, source.random() < 0.5)


@dataclass
class Reader:
    plan: Plan
    slow: bool
    socket: socket.socket
    answer: client.Answer = field(default_factory=client.Answer)
    events: list[Any] = field(default_factory=list)

    def read(self) -> bool:
        data = self.socket.recv(SLOW_BYTES if self.slow else 65536)
        if data:
            self.answer.feed(data)
        if self.answer.status == 200 and self.answer.headers["content-type"].startswith("text/event-stream"):
            self.events += self.answer.events()
        return bool(data) and not self.answer.done

    def check(self) -> None:
        """Everything that there is to know of the end."""
        assert self.answer.done, "the answer was cut short"
        plan = self.plan
        if self.answer.status != 200:  # nothing had been sent when it failed
            assert not plan.tokens, "tokens were lost"
            assert self.answer.json()["error"]["code"] == ERRORS[plan.finish]
            return
        *events, done = self.events
        assert done == client.DONE and client.DONE not in events
        if plan.usage and plan.finish in REASONS:
            self._check_usage(events.pop())
        choices = [event["choices"][0] for event in events if "choices" in event]
        assert [token for choice in choices for token in choice["token_ids"]] == plan.tokens
        ends = [choice["finish_reason"] for choice in choices if "finish_reason" in choice]
        errors = [event["error"]["code"] for event in events if "error" in event]
        if plan.finish in REASONS:
            assert (ends, errors) == ([REASONS[plan.finish]], []) and "finish_reason" in choices[-1]
        else:
            assert (ends, errors) == ([], [ERRORS[plan.finish]]) and "error" in events[-1]
        if plan.logprobs:
            self._check_logprobs(choices)

    def _check_usage(self, event: dict[str, Any]) -> None:
        count = len(self.plan.tokens)
        assert event["choices"] == []
        assert event["usage"] == {"prompt_tokens": 3, "completion_tokens": count, "total_tokens": 3 + count}

    def _check_logprobs(self, choices: list[dict[str, Any]]) -> None:
        place = 0
        for choice in choices:
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
    with selectors.DefaultSelector() as selector:
        for reader in readers:
            selector.register(reader.socket, selectors.EVENT_READ, reader)
        while selector.get_map():
            ready = selector.select(client.PATIENCE)
            assert ready, f"{len(selector.get_map())} streams hang"
            for key, _ in ready:
                if not key.data.read():
                    selector.unregister(key.fileobj)
                    key.data.socket.close()


def play(cluster: Cluster, plans: dict[int, Plan]) -> list[Reader]:
    def script(add: wire.EngineCoreRequest) -> list[Step]:
        return list(plans[add.prompt_token_ids[0]].steps)

    for rank in range(RANKS):
        cluster.start_engine(rank, script=script, tensor_names="torch" if rank % 2 else "numpy")
    cluster.wait_ready()
    readers = [dial(cluster.port(), plan, number % 3 == 0) for number, plan in plans.items()]
    read_all(readers)
    return readers


def test_every_stream_is_its_script_and_has_one_end(new_cluster: NewCluster) -> None:
    source = random.Random(SEED)
    plans = {number: make_plan(source, number) for number in range(STREAMS)}
    cluster = new_cluster(RANKS).start()
    readers = play(cluster, plans)
    for number, reader in enumerate(readers):
        try:
            reader.check()
        except AssertionError as fault:
            raise AssertionError(f"seed {SEED}, stream {number}: {fault}; {reader.events[-3:]}") from fault
    cluster.wait_idle()
    ended = cluster.status()["counters"]["ended"]
    wanted = dict.fromkeys(CAUSES.values(), 0)
    for plan in plans.values():
        wanted[CAUSES[plan.finish]] += 1
    assert {name: ended[name] for name in wanted} == wanted
    assert sum(ended.values()) == STREAMS
