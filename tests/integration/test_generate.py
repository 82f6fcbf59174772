"""POST /inference/v1/generate as it should be: its answers, and what of it reaches the engine (B075)."""

import re
import time
from typing import Any

import pytest

from integration import client
from integration.cluster import Cluster
from integration.conftest import NewCluster
from interop import messages as wire
from interop.engine import Engine
from interop.tokens import expected

PROMPT = [11, 22, 33, 44]
LIMIT = 4096
EOS, SECOND_EOS = 2, 7


def make_cluster(new_cluster: NewCluster) -> Cluster:
    cluster = new_cluster(1, eos_token_ids=[EOS, SECOND_EOS]).start()
    cluster.start_engine(0, max_model_len=LIMIT, tokens_per_step=4)
    return cluster.wait_ready()


def prompt_with(token: int, within: int) -> list[int]:
    """A prompt whose answer has that token among its first ones, and not as the very first."""
    for number in range(10**6):
        tokens, reason = expected([number, 5], within, client.VOCAB_SIZE, {token})
        if reason == "stop" and len(tokens) > 1:
            return [number, 5]
    raise AssertionError("no such prompt")


def sent(
    cluster: Cluster, body: dict[str, Any], headers: client.Headers = ()
) -> tuple[client.Answer, Engine]:
    engine = cluster.engines[0]
    count = len(engine.added)
    answer = client.post(cluster.port(), body, headers)
    assert answer.status == 200, bytes(answer.body)
    assert len(engine.added) == count + 1
    return answer, engine


def test_an_answer_has_the_documented_shape(shared_cluster: Cluster) -> None:
    body = client.generate_body(PROMPT, 10, request_id="shape-1", sampling={"ignore_eos": True})
    answer, _ = sent(shared_cluster, body)
    document = answer.json()
    assert abs(document.pop("created") - time.time()) < 60
    assert document == {
        "request_id": "shape-1",
        "model": "demo",
        "choices": [
            {
                "index": 0,
                "token_ids": expected(PROMPT, 10, client.VOCAB_SIZE)[0],
                "finish_reason": "length",
                "logprobs": None,
            }
        ],
        "usage": {"prompt_tokens": 4, "completion_tokens": 10, "total_tokens": 14},
        "prompt_logprobs": None,
        "kv_transfer_params": None,
        "ec_transfer_params": None,
    }
    assert answer.headers["content-type"].startswith("application/json")
    assert (answer.headers["x-request-id"], answer.headers["x-data-parallel-rank"]) == ("shape-1", "0")


@pytest.mark.parametrize("usage", [False, True])
def test_a_stream_has_one_event_for_each_output(shared_cluster: Cluster, usage: bool) -> None:
    options = {"stream_options": {"include_usage": True}} if usage else {}
    body = client.generate_body(
        PROMPT, 10, stream=True, request_id="shape-2", sampling={"ignore_eos": True}, **options
    )
    with client.open_post(shared_cluster.port(), body) as stream:
        events = stream.events()
        headers = stream.answer.headers
    tokens = expected(PROMPT, 10, client.VOCAB_SIZE)[0]
    choices: list[dict[str, Any]] = [
        {"index": 0, "token_ids": tokens[:4]},
        {"index": 0, "token_ids": tokens[4:8]},
        {"index": 0, "token_ids": tokens[8:], "finish_reason": "length"},
    ]
    assert events[:3] == [{"request_id": "shape-2", "choices": [choice]} for choice in choices]
    assert events[-1] == client.DONE
    if usage:
        assert events[3]["choices"] == []
        assert events[3]["usage"] == {"prompt_tokens": 4, "completion_tokens": 10, "total_tokens": 14}
    assert len(events) == 4 + usage
    assert headers["content-type"].startswith("text/event-stream")
    assert (headers["x-request-id"], headers["x-data-parallel-rank"]) == ("shape-2", "0")


def test_the_clients_id_comes_back_and_the_engine_gets_a_unique_one(shared_cluster: Cluster) -> None:
    body = client.generate_body(PROMPT, 4)
    ids: set[str] = set()
    for _ in range(3):
        answer, engine = sent(shared_cluster, body, [("X-Request-Id", "client.id-7")])
        assert answer.json()["request_id"] == answer.headers["x-request-id"] == "client.id-7"
        add = engine.added[-1].add
        assert re.fullmatch(r"client\.id-7-[0-9a-f]{8}", add.request_id)
        assert add.external_req_id == "client.id-7"
        ids.add(add.request_id)
    assert len(ids) == 3


def test_without_an_id_each_request_gets_one(shared_cluster: Cluster) -> None:
    answers = [sent(shared_cluster, client.generate_body(PROMPT, 4))[0] for _ in range(2)]
    ids = {answer.json()["request_id"] for answer in answers}
    assert len(ids) == 2 and all(ids)


def test_every_sampling_field_reaches_the_engine(shared_cluster: Cluster) -> None:
    sampling: dict[str, Any] = {
        "temperature": 0.5,
        "top_p": 0.875,
        "top_k": 40,
        "min_p": 0.0625,
        "seed": -(2**63),
        "min_tokens": 3,
        "presence_penalty": -1.5,
        "frequency_penalty": 2,
        "repetition_penalty": 1.25,
        "stop_token_ids": [31999, 5],
        "ignore_eos": True,
    }
    body = client.generate_body(PROMPT, 20, priority=-(2**63), cache_salt="tenänt", sampling=sampling)
    _, engine = sent(shared_cluster, body)
    add, params = engine.added[-1].add, engine.added[-1].add.sampling_params
    for name, value in sampling.items():
        assert getattr(params, name) == value, name
    assert (params.max_tokens, params.eos_token_id) == (20, None)
    assert set(params.all_stop_token_ids) == {31999, 5, EOS, SECOND_EOS}
    assert (add.priority, add.cache_salt, add.data_parallel_rank) == (-(2**63), "tenänt", None)
    assert add.prompt_token_ids == PROMPT and add.client_index == 1
    assert abs(add.arrival_time - time.time()) < 60


def test_defaults_are_left_out(shared_cluster: Cluster) -> None:
    sampling: dict[str, Any] = {
        "temperature": 1.0,
        "top_p": 1,
        "top_k": 0,
        "seed": None,
        "stop_token_ids": [],
        "ignore_eos": False,
    }
    for given in (None, sampling):
        _, engine = sent(shared_cluster, client.generate_body(PROMPT, 4, sampling=given or {}))
        assert set(wire.explicit_defaults(engine.added[-1].payload)) <= {"max_tokens"}


def test_the_models_eos_ids_are_sent_for_the_engine_to_stop_at(shared_cluster: Cluster) -> None:
    _, engine = sent(shared_cluster, client.generate_body(PROMPT, 4, sampling={"stop_token_ids": [9]}))
    params = engine.added[-1].add.sampling_params
    assert params.eos_token_id == EOS
    assert set(params.stop_token_ids) == {9, SECOND_EOS}
    assert set(params.all_stop_token_ids) == {9, SECOND_EOS, EOS}


@pytest.mark.parametrize("token", [EOS, SECOND_EOS])
def test_a_text_ends_at_an_eos_id_unless_it_is_ignored(shared_cluster: Cluster, token: int) -> None:
    prompt = prompt_with(token, within=40)
    stops = {EOS, SECOND_EOS}
    choice = sent(shared_cluster, client.generate_body(prompt, 48))[0].json()["choices"][0]
    assert (choice["token_ids"], choice["finish_reason"]) == expected(prompt, 48, client.VOCAB_SIZE, stops)
    body = client.generate_body(prompt, 48, sampling={"ignore_eos": True})
    choice = sent(shared_cluster, body)[0].json()["choices"][0]
    assert (choice["token_ids"], choice["finish_reason"]) == expected(prompt, 48, client.VOCAB_SIZE)


def test_a_text_ends_at_a_stop_id(shared_cluster: Cluster) -> None:
    stop = expected(PROMPT, 6, client.VOCAB_SIZE)[0][5]
    answer, _ = sent(shared_cluster, client.generate_body(PROMPT, 48, sampling={"stop_token_ids": [stop]}))
    choice = answer.json()["choices"][0]
    assert (len(choice["token_ids"]), choice["finish_reason"]) == (6, "stop")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("given", "on_the_wire"), [(None, LIMIT - 4), (16, 16), (1, 1), (LIMIT - 4, LIMIT - 4)]
)
def test_max_tokens_is_what_was_asked_for_or_what_fits(
    shared_cluster: Cluster, stream: bool, given: int | None, on_the_wire: int
) -> None:
    # the stop id ends it after six tokens: what counts here is the number on the wire
    stop = expected(PROMPT, 6, client.VOCAB_SIZE)[0][5]
    body = client.generate_body(PROMPT, given, stream=stream, sampling={"stop_token_ids": [stop]})
    _, engine = sent(shared_cluster, body)
    assert engine.added[-1].add.sampling_params.max_tokens == on_the_wire


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("given", [0, -1, LIMIT - 3, 2**63 - 1])
def test_max_tokens_that_cannot_be_is_refused(shared_cluster: Cluster, stream: bool, given: int) -> None:
    count = len(shared_cluster.engines[0].added)
    answer = client.post(shared_cluster.port(), client.generate_body(PROMPT, given, stream=stream))
    assert "max_tokens" in client.error_of(answer, 400, "invalid_request")["param"]
    assert len(shared_cluster.engines[0].added) == count


@pytest.mark.parametrize("model", [None, "demo"])
def test_the_model_may_be_named_or_left_out(shared_cluster: Cluster, model: str | None) -> None:
    options = {} if model is None else {"model": model}
    assert sent(shared_cluster, client.generate_body(PROMPT, 4, **options))[0].json()["model"] == "demo"


def test_the_models_route_lists_the_model(shared_cluster: Cluster) -> None:
    document = client.get(shared_cluster.port(), "/v1/models").json()
    assert document["object"] == "list"
    assert [(model["id"], model["object"]) for model in document["data"]] == [("demo", "model")]


def test_no_gauge_is_left_over(shared_cluster: Cluster) -> None:
    shared_cluster.wait_idle()


@pytest.mark.parametrize("older", [False, True])
@pytest.mark.parametrize("trim", [False, True])
def test_outputs_of_every_form_are_understood(new_cluster: NewCluster, older: bool, trim: bool) -> None:
    cluster = new_cluster(1).start()
    cluster.start_engine(0, older=older, trim=trim, tokens_per_step=3)
    cluster.wait_ready()
    client.run([client.Job(cluster.port(), [i], 10, stream=i % 2 == 0) for i in range(20)])
