"""Whatever a body says, nothing leaves that an engine would refuse, and the answer is an answer. What is right reaches
the engine as it was meant, every field of it, and the answer is the whole of what the engine made.

WG_BODIES sets how many there are (a long run: 100000), WG_SEED where they begin."""

import itertools
import os
import socket
from typing import Any

from integration import client
from integration.cluster import Cluster
from integration.conftest import NewCluster
from interop.bad_bodies import MODEL_LEN
from interop.bodies import Body, Generator, Wanted
from interop.reference import CACHED_TOKENS, EOS_IDS, LORA, Reference, canonical

COUNT = int(os.environ.get("WG_BODIES", "3000"))
SEED = int(os.environ.get("WG_SEED", "1"))
LINES = 4
STATUSES = {
    Wanted.SERVED: {200},
    Wanted.REFUSED: {400, 404},
    Wanted.EITHER: {200, 400, 404, 413, 504},  # 504: a digit less in deadline_ms
}


class Line:
    """A connection that is kept for as long as the server keeps it."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.socket: socket.socket | None = None

    def post(self, body: Body) -> client.Answer:
        answer = client.Answer()
        self.socket = self.socket or socket.create_connection((client.HOST, self.port), client.PATIENCE)
        self.socket.sendall(client.request_bytes("POST", body.path, body.text, body.headers))
        while not answer.done:
            data = self.socket.recv(65536)
            assert data, "the connection was closed without an answer"
            answer.feed(data)
        if not answer.keeps_connection:
            self.close()
        return answer

    def close(self) -> None:
        if self.socket:
            self.socket.close()
        self.socket = None


def rows_of(logprobs: Any) -> int:
    """How many tokens have their logprobs, in the form of either route."""
    return len(logprobs["content"] if "content" in logprobs else logprobs["tokens"])


def check_parts(reference: Reference, parts: list[dict[str, Any]]) -> None:
    """The parts of choices, in the order in which they came: all of one whole answer, or of the events."""
    tokens: dict[int, list[int]] = {}
    reasons: dict[int, str] = {}
    for part in parts:
        index = part["index"]
        assert index not in reasons, "a choice went on after its end"
        tokens.setdefault(index, []).extend(part["token_ids"])
        if part.get("finish_reason"):
            reasons[index] = part["finish_reason"]
        assert bool(part.get("logprobs")) == reference.has_logprobs
        assert not reference.has_logprobs or rows_of(part["logprobs"]) == len(part["token_ids"])
    wanted = dict(enumerate(reference.choices))
    assert tokens == {index: choice.tokens for index, choice in wanted.items()}
    assert reasons == {index: choice.reason for index, choice in wanted.items()}


def check_whole(reference: Reference, answer: dict[str, Any]) -> None:
    check_parts(reference, answer["choices"])
    assert answer["usage"] == reference.usage()
    for name, params in reference.transfer_params().items():
        assert canonical(answer[name]) == canonical(params), name


def check_stream(reference: Reference, events: list[Any]) -> None:
    *events, done = events
    assert done == client.DONE and client.DONE not in events
    if reference.wants_usage:
        last = events.pop()
        assert (last["choices"], last["usage"]) == ([], reference.usage())
    assert all(len(event["choices"]) == 1 for event in events)
    assert all(("usage" in event) == reference.is_usage_continuous for event in events)
    check_parts(reference, [event["choices"][0] for event in events])
    params = reference.transfer_params()
    for event in events:
        ends = bool(event["choices"][0].get("finish_reason"))
        assert ("kv_transfer_params" in event) == (ends and any(value is not None for value in params.values()))
        assert not ends or all(canonical(event.get(name)) == canonical(value) for name, value in params.items())


def check_served(body: Body, answer: client.Answer, cluster: Cluster) -> None:
    reference = Reference(body)
    reference.check_adds([request.add for request in cluster.engines[0].added])
    identity = answer.headers["x-request-id"]
    assert cluster.engines[0].added[0].add.external_req_id == identity
    if reference.streams:
        check_stream(reference, answer.events())
    else:
        check_whole(reference, answer.json())


def check(body: Body, answer: client.Answer, cluster: Cluster) -> None:
    engine = cluster.engines[0]
    assert answer.status in STATUSES[body.wanted], f"status {answer.status}, but it is to be {body.wanted.value}"
    if body.wanted == Wanted.SERVED:
        check_served(body, answer, cluster)
    if answer.status != 200:
        assert answer.json()["error"]["message"]  # an error is sound JSON, whatever it is about
        assert answer.status == 504 or not engine.added, "it was refused, but an engine has it"
    engine.check()
    engine.added.clear()
    engine.received.clear()


def test_every_body_is_served_or_refused_and_no_engine_is_hurt(new_cluster: NewCluster) -> None:
    adapters = {LORA.lora_name: (LORA.lora_int_id, LORA.lora_path)}
    # the engine is faster than this client: nobody is to be cut for it
    limits = {"max_stream_bytes": 2**28}
    cluster = new_cluster(1, adapters=adapters, eos_token_ids=EOS_IDS, limits=limits).start()
    cluster.start_engine(
        0,
        tokens_per_step=300,
        stats=False,
        max_model_len=MODEL_LEN,
        cached_tokens=CACHED_TOKENS,
        echo_transfer_params=True,
    )
    cluster.wait_ready()
    generator = Generator(SEED)
    lines = [Line(cluster.port()) for _ in range(LINES)]
    counts = dict.fromkeys(Wanted, 0)
    for number, line in zip(range(COUNT), itertools.cycle(lines)):
        body = generator.body()
        answer = client.Answer()
        try:
            answer = line.post(body)
            check(body, answer, cluster)
        except Exception as fault:  # whatever is wrong, the body must be known
            about = f"{body.path} {body.text[:500]!r}: {answer.status} {bytes(answer.body)[:500]!r}"
            raise AssertionError(f"seed {SEED}, body {number}: {fault!r}; {about}") from fault
        counts[body.wanted] += 1
    for line in lines:
        line.close()
    assert all(count > COUNT // 10 for count in counts.values()), counts
    cluster.wait_idle()
