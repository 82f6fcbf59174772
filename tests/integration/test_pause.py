"""Pause calls and waves (B013, B014). The pause routes are not built yet, so the test makes the calls itself: it binds the
addresses of a frontend that is in the configuration and never started."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import msgspec
import zmq

from integration import client
from integration.cluster import Cluster, wait_until
from integration.conftest import NewCluster
from interop.tokens import expected

RANKS = 4
CLIENT_INDEX = 2  # behind the coordinator's slot and fe0


class Caller:
    """Utility calls to every rank."""

    def __init__(self, cluster: Cluster) -> None:
        self._context = zmq.Context()
        self._input = self._context.socket(zmq.ROUTER)
        self._input.setsockopt(zmq.ROUTER_MANDATORY, 1)
        self._input.bind(cluster.address["test-input"])
        self._output = self._context.socket(zmq.PULL)
        self._output.setsockopt(zmq.RCVTIMEO, 20000)
        self._output.bind(cluster.address["test-output"])
        self._call = 0

    def registrations(self) -> None:
        for _ in range(RANKS):
            self._input.recv_multipart()

    def everywhere(self, method: str, *args: object) -> None:
        """Calls every rank, and waits for every answer."""
        self._call += 1
        payload = msgspec.msgpack.encode([CLIENT_INDEX, self._call, method, list(args)])
        for rank in range(RANKS):
            self._input.send_multipart([rank.to_bytes(2, "little"), b"\x03", payload])
        answered: set[int] = set()
        while len(answered) < RANKS:
            outputs = msgspec.msgpack.decode(self._output.recv())
            if len(outputs) > 4 and outputs[4] and outputs[4][0] == self._call:
                assert len(outputs[4]) < 2 or outputs[4][1] is None, outputs
                answered.add(outputs[0])

    def close(self) -> None:
        self._context.destroy(linger=0)


@contextmanager
def caller(cluster: Cluster) -> Iterator[Caller]:
    calls = Caller(cluster)
    try:
        yield calls
    finally:
        calls.close()


def test_requests_of_a_held_group_run_once_after_it_is_resumed(new_cluster: NewCluster) -> None:
    cluster = new_cluster(
        RANKS, {"fe0": "0-3", "test": "0-3"}, lockstep=True, timeouts={"wave_repeat_ms": 50}
    )
    with caller(cluster) as calls, ExitStack() as stack:
        cluster.start_coordinator()
        cluster.start_frontend("fe0")
        cluster.start_fake_engines(None, "--step-ms", "0", "--collective-timeout-ms", "60000")
        cluster.wait_ready("fe0")
        calls.registrations()
        for turn in range(5):
            calls.everywhere("pause_scheduler", "keep", False)
            wait_until(lambda: not cluster.status("coordinator")["engines_running"], "the pause")
            starts = cluster.status("coordinator")["wave_starts"]
            held = []
            for i in range(30):
                connection = stack.enter_context(client.open_post(cluster.port(), client.generate_body([turn, i], 8)))
                held.append((connection, [turn, i]))
            cluster.wait_status("fe0", lambda status: status["in_flight"] == 30, "thirty requests")
            # the wake is repeated and nobody obeys: what is published is a prediction
            status = cluster.wait_status(
                "coordinator", lambda status: status["wave_starts"] >= starts + 3, "repeated wakes"
            )
            assert status["engines_running"] and not status["observed_running"]
            assert cluster.status("fe0")["in_flight"] == 30
            calls.everywhere("resume_scheduler")
            for connection, prompt in held:
                answer = connection.whole()
                tokens, reason = expected(prompt, 8, client.VOCAB_SIZE, stop_ids=(2,))
                choice = answer.json()["choices"][0]
                assert (choice["token_ids"], choice["finish_reason"]) == (tokens, reason)
            cluster.wait_idle("fe0")
        wait_until(lambda: not cluster.status("coordinator")["engines_running"], "the end of the last wave")
    assert cluster.status()["counters"]["orphan_outputs"] == 0
