"""Deadlines (B044): for a request, and for all that do not give their own."""

import time

import pytest

from integration import client
from integration.cluster import Cluster, idle
from integration.conftest import NewCluster
from interop import messages as wire

PROMPT = [1, 2, 3]


def make_cluster(new_cluster: NewCluster) -> Cluster:
    cluster = new_cluster(1, timeouts={"request_deadline_ms": 600}).start()
    cluster.start_engine(0, withhold=True)
    return cluster.wait_ready()


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("given", "held"), [({}, 0.6), ({"deadline_ms": 200}, 0.2)])
def test_a_request_without_an_answer_ends_at_its_deadline(
    shared_cluster: Cluster, stream: bool, given: dict[str, int], held: float
) -> None:
    engine = shared_cluster.engines[0]
    count = len(engine.added)
    begun = time.monotonic()
    with client.open_post(shared_cluster.port(), client.generate_body(PROMPT, 8, stream=stream, **given)) as connection:
        request = engine.wait_added(count + 1)
        error = client.error_of(connection.whole(), 504, "deadline_exceeded")
    assert held <= time.monotonic() - begun < held + 5  # not early; late only if the machine is busy
    assert f"{int(held * 1000)} ms" in error["message"]
    engine.wait_aborted(request.id)
    shared_cluster.wait_status("fe0", idle, "idleness")


def test_a_stream_that_has_begun_ends_with_an_error_event(shared_cluster: Cluster) -> None:
    engine = shared_cluster.engines[0]
    count = len(engine.added)
    with client.open_post(shared_cluster.port(), client.generate_body(PROMPT, 8, stream=True)) as stream:
        request = engine.wait_added(count + 1)
        engine.send(1, [engine.output(request, [5])])
        first, error, done = stream.events()
    assert first["choices"][0]["token_ids"] == [5]
    assert (error["error"]["code"], done) == ("deadline_exceeded", client.DONE)
    engine.wait_aborted(request.id)
    ended = shared_cluster.wait_status("fe0", idle, "idleness")["counters"]["ended"]
    assert ended["deadline"] >= 1


def test_a_request_that_ends_before_its_deadline_hears_nothing_of_it(shared_cluster: Cluster) -> None:
    engine = shared_cluster.engines[0]
    count = len(engine.added)
    with client.open_post(shared_cluster.port(), client.generate_body(PROMPT, 8, stream=True)) as stream:
        request = engine.wait_added(count + 1)
        engine.call(engine.requests.clear)
        engine.send(1, [engine.output(request, [5], finish_reason=wire.FINISH_STOP)])
        assert [event == client.DONE for event in stream.events()] == [False, True]
    time.sleep(0.8)  # its deadline passes
    assert request.id not in engine.aborted
    shared_cluster.wait_status("fe0", idle, "idleness")


def test_without_a_deadline_a_request_waits(new_cluster: NewCluster) -> None:
    cluster = new_cluster(1).start()
    engine = cluster.start_engine(0, withhold=True)
    cluster.wait_ready()
    with client.open_post(cluster.port(), client.generate_body(PROMPT, 4)) as connection:
        request = engine.wait_added()
        connection.socket.settimeout(1.5)
        with pytest.raises(TimeoutError):
            connection.read()
        connection.socket.settimeout(client.PATIENCE)
        assert request.id not in engine.aborted
        engine.withhold(False)
        assert connection.whole().status == 200


def test_a_deadline_ends_every_choice(shared_cluster: Cluster) -> None:
    engine = shared_cluster.engines[0]
    count = len(engine.added)
    body = client.generate_body(PROMPT, 8, deadline_ms=100, sampling={"n": 3})
    client.error_of(client.post(shared_cluster.port(), body), 504, "deadline_exceeded")
    for request in engine.added[count:]:
        engine.wait_aborted(request.id)
    assert len(engine.added) == count + 3


def test_a_deadline_that_is_none_is_refused(shared_cluster: Cluster) -> None:
    for wrong in (0, -1, 86400001, 1.5, "1"):
        answer = client.post(shared_cluster.port(), client.generate_body(PROMPT, 8, deadline_ms=wrong))
        assert client.error_of(answer, 400, "invalid_request")["param"] == "deadline_ms"
