"""The end of a frontend that has much to do, seen by its clients, its engines and whoever probes it (B063, B064,
B067, B068, B069). The single steps are in test_drain.py."""

from __future__ import annotations

import signal
import time
from contextlib import ExitStack

from integration import client
from integration.cluster import Cluster, wait_until
from integration.conftest import NewCluster

ENDLESS = 54
LONG = 20


def start(new_cluster: NewCluster, **timeouts: int) -> Cluster:
    cluster = new_cluster(2, timeouts=timeouts).start()
    cluster.start_engines(withhold=True)
    return cluster.wait_ready()


def open_streams(cluster: Cluster, stack: ExitStack, count: int) -> list[client.Connection]:
    bodies = [client.generate_body([number], 64, stream=True) for number in range(count)]
    streams = [stack.enter_context(client.open_post(cluster.port(), body)) for body in bodies]
    wait_until(lambda: added(cluster) == count, f"{count} ADDs")
    return streams


def added(cluster: Cluster) -> int:
    return sum(len(engine.added) for engine in cluster.engines)


def tokens(events: list[object]) -> list[int]:
    return [t for event in events if isinstance(event, dict) for t in event["choices"][0]["token_ids"]]


def test_all_that_runs_finishes_within_the_grace_and_nothing_new_begins(new_cluster: NewCluster) -> None:
    cluster = start(new_cluster, drain_ms=60000)
    frontend, port = cluster["fe0"], cluster.port()
    with ExitStack() as stack:
        streams = open_streams(cluster, stack, LONG)
        kept = stack.enter_context(client.Connection(port, client.request_bytes("GET", "/livez", None)))
        assert kept.whole().status == 200
        frontend.signal(signal.SIGTERM)
        frontend.wait_log("stopping")
        kept.answer = client.Answer()
        kept.socket.sendall(client.request_bytes("POST", client.GENERATE, b'{"token_ids":[1]}'))
        client.error_of(kept.whole(), 503, "draining")
        for engine in cluster.engines:
            engine.withhold(False)
        for stream in streams:
            *events, done = stream.events()
            assert (len(tokens(events)), done) == (64, client.DONE)
    assert frontend.wait_exit() == 0
    assert added(cluster) == LONG
    assert not any(engine.aborted for engine in cluster.engines)


def test_what_is_endless_ends_with_an_error_and_is_aborted_within_the_grace(new_cluster: NewCluster) -> None:
    cluster = start(new_cluster, drain_ms=1000)
    frontend = cluster["fe0"]
    with ExitStack() as stack:
        streams = open_streams(cluster, stack, ENDLESS)
        for engine in cluster.engines:
            for request in engine.added:
                engine.send(1, [engine.output(request, [5])])
        for stream in streams:
            assert tokens([stream.event()]) == [5]
        begun = time.monotonic()
        frontend.signal(signal.SIGTERM)
        for stream in streams:
            error, done = stream.events()
            assert (error["error"]["code"], done) == ("draining", client.DONE)
        assert frontend.wait_exit() == 0
        assert 1.0 <= time.monotonic() - begun < 10.0  # a second more on an idle machine
    for engine in cluster.engines:
        engine.wait_until(lambda: {request.id for request in engine.added} == {*engine.aborted}, "every ABORT")


def test_without_a_grace_everything_ends_at_once(new_cluster: NewCluster) -> None:
    cluster = start(new_cluster, drain_ms=0)
    with ExitStack() as stack:
        streams = open_streams(cluster, stack, LONG)
        cluster["fe0"].signal(signal.SIGTERM)
        for stream in streams:
            client.error_of(stream.whole(), 503, "draining")
    assert cluster["fe0"].wait_exit() == 0
    for engine in cluster.engines:
        engine.wait_until(lambda: {request.id for request in engine.added} == {*engine.aborted}, "every ABORT")


def test_the_times_of_the_end_are_in_the_line_of_the_start(new_cluster: NewCluster) -> None:
    cluster = new_cluster(1, timeouts={"lame_duck_ms": 300, "drain_ms": 7000})
    cluster.start_frontend("fe0").wait_log(r"listening .* lame_duck_ms=300 drain_ms=7000$")


def test_a_lame_duck_is_alive_and_accepts_until_its_time_is_over(new_cluster: NewCluster) -> None:
    cluster = start(new_cluster, lame_duck_ms=1000, drain_ms=20000)
    frontend, port = cluster["fe0"], cluster.port()
    with ExitStack() as stack:
        (running,) = open_streams(cluster, stack, 1)
        frontend.signal(signal.SIGTERM)
        wait_until(lambda: client.get(port, "/readyz").status == 503, "unreadiness")
        late = stack.enter_context(client.open_post(port, client.generate_body([9], 8, stream=True)))
        assert client.get(port, "/livez").status == 200
        wait_until(lambda: added(cluster) == 2, "the ADD of a late request")
        for engine in cluster.engines:
            engine.withhold(False)
        assert late.events()[-1] == running.events()[-1] == client.DONE
    assert frontend.wait_exit() == 0


def test_first_no_more_requests_then_the_last_outputs_then_http_and_last_the_engines(
    new_cluster: NewCluster,
) -> None:
    cluster = start(new_cluster, drain_ms=60000)
    frontend = cluster["fe0"]
    engine = cluster.engines[0]
    pin = [("X-data-parallel-rank", "0")]
    with client.open_post(cluster.port(), client.generate_body([1], 8, stream=True), pin) as stream:
        request = engine.wait_added()
        frontend.signal(signal.SIGTERM)
        wait_until(lambda: not connects(cluster.port()), "the end of the listener")
        for token in (5, 6, 7):  # the way from the engine is open, although nobody can come in any more
            engine.send(1, [engine.output(request, [token])])
            assert tokens([stream.event()]) == [token]
        assert frontend.alive
        engine.call(engine.requests.clear)
        engine.send(1, [engine.output(request, [8], finish_reason=0)])
        *events, done = stream.events()
        assert (tokens(events), done) == ([8], client.DONE)
    assert frontend.wait_exit() == 0
    assert not engine.aborted


def connects(port: int) -> bool:
    try:
        client.get(port, "/livez")
    except OSError:
        return False
    return True
