"""n choices of one request (B042), and ids that clients choose (B035)."""

import re

import pytest

from integration import client
from integration.cluster import Cluster, idle
from integration.conftest import NewCluster
from interop import messages as wire
from interop.answers import Request
from interop.engine import Engine
from interop.tokens import expected

PROMPT = [1, 2, 3]


def make_cluster(new_cluster: NewCluster) -> Cluster:
    cluster = new_cluster(2, limits={"max_in_flight": 6}).start()
    cluster.start_engines(withhold=True)
    return cluster.wait_ready()


def wait_choices(cluster: Cluster, count: int) -> tuple[Engine, list[Request]]:
    """The engine that has them all, and the ADDs."""
    busy = cluster.wait_status("fe0", lambda status: status["in_flight"] == count, f"{count} in flight")
    (rank,) = [row["rank"] for row in busy["ranks"] if row["in_flight"]]
    engine = cluster.engines[rank]
    engine.wait_until(lambda: len(engine.requests) == count, f"{count} ADDs")
    return engine, list(engine.requests.values())


def test_choices_are_requests_of_their_own_with_seeds_of_their_own(shared_cluster: Cluster) -> None:
    body = client.generate_body(PROMPT, 8, request_id="four", sampling={"n": 4, "seed": 40, "ignore_eos": True})
    with client.open_post(shared_cluster.port(), body) as connection:
        engine, requests = wait_choices(shared_cluster, 4)
        adds = [request.add for request in requests]
        assert [add.sampling_params.seed for add in adds] == [40, 41, 42, 43]
        assert {add.external_req_id for add in adds} == {"four"}
        assert len({add.request_id for add in adds}) == 4
        assert all(re.fullmatch(r"four-[0-9a-f]{8}", add.request_id) for add in adds)
        engine.withhold(False)
        answer = connection.whole()
        engine.withhold(True)
    document = answer.json()
    assert [choice["index"] for choice in document["choices"]] == [0, 1, 2, 3]
    assert {tuple(choice["token_ids"]) for choice in document["choices"]} == {
        tuple(expected(PROMPT, 8, client.VOCAB_SIZE)[0])
    }
    assert document["usage"] == {"prompt_tokens": 3, "completion_tokens": 32, "total_tokens": 35}
    assert answer.headers["x-data-parallel-rank"] == str(engine.rank)


def test_choices_of_a_stream_end_each_for_itself(shared_cluster: Cluster) -> None:
    body = client.generate_body(PROMPT, 8, stream=True, sampling={"n": 2})
    with client.open_post(shared_cluster.port(), body) as stream:
        engine, (first, second) = wait_choices(shared_cluster, 2)
        engine.call(engine.requests.clear)
        engine.send(1, [engine.output(first, [5], finish_reason=wire.FINISH_STOP)])
        assert stream.event()["choices"] == [{"index": 0, "token_ids": [5], "finish_reason": "stop"}]
        engine.send(1, [engine.output(second, [6, 7])])
        engine.send(1, [engine.output(second, [8], finish_reason=4)])
        *events, done = stream.events()
    assert done == client.DONE
    assert [event["choices"][0]["index"] for event in events] == [1, 1]
    assert events[-1]["choices"][0]["finish_reason"] == "repetition"


def test_a_client_that_leaves_has_every_choice_aborted(shared_cluster: Cluster) -> None:
    body = client.generate_body(PROMPT, 8, stream=True, sampling={"n": 4})
    with client.open_post(shared_cluster.port(), body) as stream:
        engine, requests = wait_choices(shared_cluster, 4)
        engine.send(1, [engine.output(requests[2], [5])])
        assert stream.event()["choices"][0]["index"] == 2
    for request in requests:
        engine.wait_aborted(request.id)
    shared_cluster.wait_status("fe0", idle, "idleness")


@pytest.mark.parametrize("stream", [False, True])
def test_the_failure_of_one_choice_is_that_of_the_request(shared_cluster: Cluster, stream: bool) -> None:
    body = client.generate_body(PROMPT, 8, stream=stream, sampling={"n": 3})
    with client.open_post(shared_cluster.port(), body) as connection:
        engine, requests = wait_choices(shared_cluster, 3)
        engine.send(1, [engine.output(requests[0], [5], finish_reason=wire.FINISH_STOP)])
        engine.send(1, [engine.output(requests[1], [], finish_reason=3)])
        if stream:
            *_, error, done = connection.events()
            assert (error["error"]["code"], done) == ("engine_request_error", client.DONE)
        else:
            client.error_of(connection.whole(), 500, "engine_request_error")
        engine.wait_aborted(requests[2].id)
        assert requests[0].id not in engine.aborted and requests[1].id not in engine.aborted
        engine.call(engine.requests.clear)
    shared_cluster.wait_status("fe0", idle, "idleness")


def test_there_is_room_for_all_choices_or_for_none(shared_cluster: Cluster) -> None:
    three = client.generate_body(PROMPT, 8, sampling={"n": 3})
    four = client.generate_body(PROMPT, 8, sampling={"n": 4})
    with client.open_post(shared_cluster.port(), three):
        _, requests = wait_choices(shared_cluster, 3)
        added = sum(len(engine.added) for engine in shared_cluster.engines)
        answer = client.post(shared_cluster.port(), four)
        client.error_of(answer, 429, "overloaded")
        assert answer.headers["retry-after"]
        seven = client.generate_body(PROMPT, 8, sampling={"n": 7})
        client.error_of(client.post(shared_cluster.port(), seven), 400, "invalid_request")
        assert sum(len(engine.added) for engine in shared_cluster.engines) == added
    shared_cluster.wait_status("fe0", idle, "idleness")


def test_greedy_choices_would_all_be_the_same(shared_cluster: Cluster) -> None:
    body = client.generate_body(PROMPT, 8, sampling={"n": 2, "temperature": 0})
    error = client.error_of(client.post(shared_cluster.port(), body), 400, "invalid_request")
    assert error["param"] == "sampling_params.n"


def test_an_id_is_free_again_when_its_request_has_ended(shared_cluster: Cluster) -> None:
    body = client.generate_body(PROMPT, 8, request_id="x", sampling={"n": 2})
    for _ in range(3):
        with client.open_post(shared_cluster.port(), body) as connection:
            engine, requests = wait_choices(shared_cluster, 2)
            client.error_of(client.post(shared_cluster.port(), body), 409, "duplicate_request_id")
            outputs = [engine.output(request, [9], finish_reason=wire.FINISH_STOP) for request in requests]
            engine.call(engine.requests.clear)
            engine.send(1, outputs)
            assert connection.whole().status == 200
