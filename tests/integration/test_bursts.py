"""Bursts of outputs with silence between them, while requests go the other way: every one arrives once, and none
waits for the next one's wake-up (B108). WG_BURST_MESSAGES says how many there are; 10000000 is the long run."""

from __future__ import annotations

import os
import random
import statistics
import time
from contextlib import ExitStack

from integration import client
from integration.conftest import NewCluster
from interop import messages as wire
from interop.engine import Engine, Request

MESSAGES = int(os.environ.get("WG_BURST_MESSAGES", "20000"))
MESSAGES_PER_ROUND = 100_000  # then new streams
STREAMS = 4
LARGEST = 1000
SEED = 1


class Stream:
    def __init__(self, connection: client.Connection, request: Request) -> None:
        self.connection = connection
        self.request = request
        self.sent: list[int] = []
        self.got = 0

    def message(self, engine: Engine, number: int) -> bytes:
        self.sent.append(number % client.VOCAB_SIZE)
        return engine._envelope([wire.EngineCoreOutput(self.request.id, self.sent[-1:])], {})

    def read(self) -> None:
        """Until all is here that was sent."""
        while self.got < len(self.sent):
            event = self.connection.event()
            ids = event["choices"][0]["token_ids"]
            assert ids == self.sent[self.got : self.got + len(ids)], f"at token {self.got}"
            self.got += len(ids)


def wait_request(engine: Engine, name: str) -> Request:
    def find() -> Request | None:
        return next((request for request in reversed(engine.added) if request.id.startswith(name + "-")), None)

    found = engine.wait_until(find, f"ADD of {name}")
    assert isinstance(found, Request)
    return found


def one_round(port: int, engine: Engine, numbers: random.Random, count: int) -> list[tuple[int, float]]:
    """Returns for each burst how large it was, and how long it took to arrive."""
    took: list[tuple[int, float]] = []
    with ExitStack() as stack:
        streams: list[Stream] = []
        for number in range(STREAMS):
            name = f"burst-{len(engine.added)}-{number}"
            body = client.generate_body([number], count + 1, stream=True, request_id=name)
            connection = stack.enter_context(client.open_post(port, body))
            streams.append(Stream(connection, wait_request(engine, name)))
        left = count
        while left:
            size = min(left, round(LARGEST ** numbers.random()))  # small ones as often as large ones
            left -= size
            messages = [numbers.choice(streams).message(engine, left + i) for i in range(size)]
            if numbers.random() < 0.3:  # an ADD and an ABORT, whose sending looks at the sockets, too
                client.open_post(port, client.generate_body([7], 1)).close()
            begun = time.monotonic()
            engine.call(lambda: [engine._sockets.outputs[1].send(message) for message in messages])
            for stream in streams:
                stream.read()
            took.append((size, time.monotonic() - begun))
        for stream in streams:
            final = wire.EngineCoreOutput(stream.request.id, [], finish_reason=wire.FINISH_STOP)
            engine.send(1, [final])
            engine.call(lambda: engine.requests.pop(stream.request.id))
            *_, done = stream.connection.events()
            assert done == client.DONE
    return took


def test_every_output_of_every_burst_arrives_once_and_none_waits(new_cluster: NewCluster) -> None:
    cluster = new_cluster(1).start()
    engine = cluster.start_engine(0, withhold=True, stats=False, max_model_len=2 * MESSAGES_PER_ROUND)
    cluster.wait_ready()
    numbers = random.Random(SEED)
    took: list[tuple[int, float]] = []
    for begin in range(0, MESSAGES, MESSAGES_PER_ROUND):
        count = min(MESSAGES_PER_ROUND, MESSAGES - begin)
        took += one_round(cluster.port(), engine, numbers, count)
    small = sorted(seconds for size, seconds in took if size <= 10)
    print(
        f"{MESSAGES} messages in {len(took)} bursts; bursts of 10 and less arrived after",
        f"{statistics.median(small) * 1000:.2f} ms in the median, {small[-1] * 1000:.2f} ms at most",
    )
    # A wake-up that is missed is made good by the next message, or by the sweep once a second.
    assert statistics.median(small) < 0.25
    cluster.wait_idle()
    status = cluster.status()
    assert status["faults"] == {} and status["counters"]["orphan_outputs"] == 0
