"""Comments that keep a silent stream from being cut by a proxy (B089)."""

import time

import pytest

from integration import client
from integration.cluster import Cluster
from integration.conftest import NewCluster
from interop import messages as wire

INTERVAL_MS = 200
COMMENT = b": keep-alive\n\n"


def make_cluster(new_cluster: NewCluster) -> Cluster:
    cluster = new_cluster(1, timeouts={"keep_alive_ms": INTERVAL_MS}).start()
    cluster.start_engine(0, withhold=True)
    return cluster.wait_ready()


def wait_comments(stream: client.Connection, count: int) -> None:
    before = stream.answer.body.count(COMMENT)
    while stream.answer.body.count(COMMENT) < before + count:
        assert stream.read(), "the stream ended"


def test_a_silent_stream_gets_its_head_and_comments(shared_cluster: Cluster) -> None:
    engine = shared_cluster.engines[0]
    count = len(engine.added)
    begun = time.monotonic()
    with client.open_post(shared_cluster.port(), client.generate_body([1], 8, stream=True)) as stream:
        request = engine.wait_added(count + 1)
        wait_comments(stream, 3)
        assert stream.answer.status == 200
        assert time.monotonic() - begun >= 3 * INTERVAL_MS / 1000
        engine.send(1, [engine.output(request, [5])])
        wait_comments(stream, 2)
        engine.send(1, [engine.output(request, [6], finish_reason=wire.FINISH_STOP)])
        engine.call(engine.requests.clear)
        events = stream.events()
        stream.whole()
    tokens = [token for event in events[:-1] for token in event["choices"][0]["token_ids"]]
    assert (tokens, events[-1]) == ([5, 6], client.DONE)
    assert stream.answer.body.endswith(b"data: [DONE]\n\n")


def test_a_failure_after_a_comment_is_an_error_event(shared_cluster: Cluster) -> None:
    engine = shared_cluster.engines[0]
    count = len(engine.added)
    with client.open_post(shared_cluster.port(), client.generate_body([1], 8, stream=True)) as stream:
        request = engine.wait_added(count + 1)
        wait_comments(stream, 1)
        engine.send(1, [engine.output(request, [], finish_reason=wire.FINISH_ABORT)])
        engine.call(engine.requests.clear)
        error, done = stream.events()
    assert (error["error"]["code"], done) == ("request_aborted", client.DONE)


def test_an_answer_that_is_no_stream_has_none(shared_cluster: Cluster) -> None:
    engine = shared_cluster.engines[0]
    count = len(engine.added)
    with client.open_post(shared_cluster.port(), client.generate_body([1], 8)) as connection:
        request = engine.wait_added(count + 1)
        connection.socket.settimeout(3 * INTERVAL_MS / 1000)
        with pytest.raises(TimeoutError):
            connection.read()
        connection.socket.settimeout(client.PATIENCE)
        engine.send(1, [engine.output(request, [6], finish_reason=wire.FINISH_STOP)])
        engine.call(engine.requests.clear)
        assert connection.whole().json()["choices"][0]["token_ids"] == [6]


def test_without_the_setting_there_is_none(new_cluster: NewCluster) -> None:
    cluster = new_cluster(1).start()
    engine = cluster.start_engine(0, withhold=True)
    cluster.wait_ready()
    with client.open_post(cluster.port(), client.generate_body([1], 8, stream=True)) as stream:
        request = engine.wait_added()
        stream.socket.settimeout(1.0)
        with pytest.raises(TimeoutError):
            stream.read()
        stream.socket.settimeout(client.PATIENCE)
        engine.send(1, [engine.output(request, [6], finish_reason=wire.FINISH_STOP)])
        engine.call(engine.requests.clear)
        stream.whole()
        assert b"keep-alive" not in stream.answer.body
