"""Every field of a request reaches the engine as msgspec reads it, and what an engine says beside tokens comes back."""

import json
from typing import Any

import pytest

from integration import client
from integration.cluster import Cluster
from integration.conftest import NewCluster
from interop import messages as wire
from interop.engine import Engine

PROMPT = [11, 22, 33, 44]
SCHEMA = {"type": "object", "properties": {"a": {"type": ["null", "number"]}}}


def make_cluster(new_cluster: NewCluster) -> Cluster:
    cluster = new_cluster(1, adapters={"sql": (3, "/loras/sql"), "py": (4, "/loras/py")}).start()
    cluster.start_engine(0, tokens_per_step=4, cached_tokens=3, echo_transfer_params=True)
    return cluster.wait_ready()


def served(cluster: Cluster, body: dict[str, Any], headers: client.Headers = ()) -> tuple[Any, wire.EngineCoreRequest]:
    """The answer's document, and what the engine got."""
    engine: Engine = cluster.engines[0]
    answer = client.post(cluster.port(), body, headers)
    assert answer.status == 200, bytes(answer.body)
    return answer.json(), engine.added[-1].add


def params_of(cluster: Cluster, **sampling: Any) -> wire.SamplingParams:
    return served(cluster, client.generate_body(PROMPT, 8, sampling=sampling))[1].sampling_params


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("logprobs", 0),
        ("logprobs", 20),
        ("prompt_logprobs", 20),
        ("logprob_token_ids", [0, 31999]),
        ("allowed_token_ids", [5, 128, 31999]),
        ("thinking_token_budget", -1),
        ("thinking_token_budget", 2**62),
        ("skip_reading_prefix_cache", False),
        ("skip_reading_prefix_cache", True),
        ("extra_args", {"a": [1, -2.5, None, True, "ü", {"b": {}}], "big": 2**63 - 1}),
    ],
)
def test_a_sampling_field_arrives_as_it_was_given(shared_cluster: Cluster, field: str, value: Any) -> None:
    assert getattr(params_of(shared_cluster, **{field: value}), field) == value


def test_logit_bias_arrives_with_ids_for_keys(shared_cluster: Cluster) -> None:
    params = params_of(shared_cluster, logit_bias={"5": -100, "31999": 0.25, "0": 1})
    assert params.logit_bias == {5: -100.0, 31999: 0.25, 0: 1.0}


def test_repetition_detection_arrives(shared_cluster: Cluster) -> None:
    wanted = {"max_pattern_size": 8, "min_pattern_size": 2, "min_count": 3}
    found = params_of(shared_cluster, repetition_detection=wanted).repetition_detection
    assert found == wire.RepetitionDetection(**wanted)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"json": SCHEMA}, {"json": SCHEMA}),
        ({"json": json.dumps(SCHEMA), "disable_any_whitespace": True}, {"json": json.dumps(SCHEMA), "disable_any_whitespace": True}),
        ({"regex": "[äb]+", "json": None}, {"regex": "[äb]+"}),
        ({"choice": ["yes", "no"]}, {"choice": ["yes", "no"]}),
        ({"grammar": "root ::= x", "whitespace_pattern": " ?"}, {"grammar": "root ::= x", "whitespace_pattern": " ?"}),
        ({"json_object": True}, {"json_object": True}),
        ({"structural_tag": {"a": 1}}, {"structural_tag": '{"a":1}'}),
    ],
)
def test_structured_outputs_arrive_with_the_engines_compiler(
    shared_cluster: Cluster, given: dict[str, Any], wanted: dict[str, Any]
) -> None:
    found = params_of(shared_cluster, structured_outputs=given).structured_outputs
    assert found == wire.StructuredOutputs(backend="guidance", **wanted)


def test_what_is_given_as_its_default_is_not_sent(shared_cluster: Cluster) -> None:
    defaults: dict[str, Any] = {"n": 1, "logprobs": None, "logit_bias": {}, "extra_args": {}, "stop": [], "detokenize": True}
    served(shared_cluster, client.generate_body(PROMPT, 8, sampling=defaults))
    assert set(wire.explicit_defaults(shared_cluster.engines[0].added[-1].payload)) <= {"max_tokens"}


def test_transfer_params_go_in_and_come_out(shared_cluster: Cluster) -> None:
    kv = {"do_remote_decode": True, "remote_block_ids": [1, 2, 3], "host": "a", "x": None, "f": 0.5}
    ec = {"uuid": "ü"}
    body = client.generate_body(PROMPT, 8, kv_transfer_params=kv, ec_transfer_params=ec, sampling={"extra_args": {"mine": 1}})
    document, add = served(shared_cluster, body)
    assert add.sampling_params.extra_args == {"mine": 1, "kv_transfer_params": kv, "ec_transfer_params": ec}
    assert (document["kv_transfer_params"], document["ec_transfer_params"]) == (kv, ec)
    with client.open_post(shared_cluster.port(), body | {"stream": True}) as stream:
        *others, last, _ = stream.events()
    assert (last["kv_transfer_params"], last["ec_transfer_params"]) == (kv, ec)
    assert all("kv_transfer_params" not in event for event in others)


def test_the_same_params_twice_are_refused(shared_cluster: Cluster) -> None:
    extra = {"extra_args": {"kv_transfer_params": {}}}
    body = client.generate_body(PROMPT, 8, kv_transfer_params={}, sampling=extra)
    client.error_of(client.post(shared_cluster.port(), body), 400, "invalid_request")


def test_an_adapter_is_named_like_a_model(shared_cluster: Cluster) -> None:
    document, add = served(shared_cluster, client.generate_body(PROMPT, 8, model="py"))
    assert add.lora_request == wire.LoraRequest("py", 4, "/loras/py") and document["model"] == "py"
    assert served(shared_cluster, client.generate_body(PROMPT, 8, model="demo"))[1].lora_request is None
    models = client.get(shared_cluster.port(), "/v1/models").json()["data"]
    assert [(model["id"], model["parent"]) for model in models] == [("demo", None), ("sql", "demo"), ("py", "demo")]


@pytest.mark.parametrize(
    ("headers", "wanted"),
    [
        ([], None),
        ([("traceparent", "00-ab-cd-01")], {"traceparent": "00-ab-cd-01"}),
        ([("Traceparent", "00-1"), ("tracestate", "v=1")], {"traceparent": "00-1", "tracestate": "v=1"}),
        ([("tracestate", "v=1")], None),
        ([("traceparent", "00-1"), ("traceparent", "00-2")], None),
        ([("traceparent", "\xff")], None),
        ([("traceparent", "a" * 2000)], None),
    ],
)
def test_a_trace_is_passed_on_where_it_is_sound(
    shared_cluster: Cluster, headers: list[tuple[str, str]], wanted: dict[str, str] | None
) -> None:
    assert served(shared_cluster, client.generate_body(PROMPT, 8), headers)[1].trace_headers == wanted


def test_cached_tokens_are_in_the_usage(shared_cluster: Cluster) -> None:
    usage = served(shared_cluster, client.generate_body(PROMPT, 8, sampling={"n": 2}))[0]["usage"]
    assert usage["prompt_tokens"] == 4 and usage["prompt_tokens_details"] == {"cached_tokens": 3}


def test_usage_can_be_on_every_event(shared_cluster: Cluster) -> None:
    options = {"continuous_usage_stats": True}
    body = client.generate_body(PROMPT, 10, stream=True, stream_options=options, sampling={"ignore_eos": True})
    with client.open_post(shared_cluster.port(), body) as stream:
        *events, done = stream.events()
    assert [event["usage"]["completion_tokens"] for event in events] == [4, 8, 10, 10]
    assert events[-1]["choices"] == [] and done == client.DONE


# --- the model's own files ---


def test_a_models_files_give_the_defaults(new_cluster: NewCluster, tmp_path: Any) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"vocab_size": 1000, "eos_token_id": 7}))
    generation = {"eos_token_id": [7, 9], "temperature": 0.6, "top_k": 20, "top_p": 0.95, "max_new_tokens": 5}
    (tmp_path / "generation_config.json").write_text(json.dumps(generation | {"repetition_penalty": 1.1}))
    cluster = new_cluster(1, model=f'path = "{tmp_path}";').start()
    engine = cluster.start_engine(0, vocab_size=1000)
    cluster.wait_ready()
    _, add = served(cluster, client.generate_body(PROMPT))
    params = add.sampling_params
    assert (params.temperature, params.top_k, params.top_p, params.repetition_penalty) == (0.6, 20, 0.95, 1.1)
    assert (params.max_tokens, params.eos_token_id, params.stop_token_ids) == (5, 7, [9])
    _, add = served(cluster, client.generate_body(PROMPT, 6, sampling={"temperature": 1.0, "top_k": 0}))
    assert (add.sampling_params.temperature, add.sampling_params.top_k, add.sampling_params.max_tokens) == (1.0, 0, 6)
    error = client.error_of(client.post(cluster.port(), client.generate_body([1000], 1)), 400, "invalid_request")
    assert "999" in error["message"]
    assert len(engine.added) == 2


def test_a_frontend_without_its_models_files_says_so_and_ends(new_cluster: NewCluster) -> None:
    cluster = new_cluster(1, model='path = "/nonexistent";')
    frontend = cluster.start_frontend()
    frontend.may_end_with = {2}
    assert frontend.wait_exit() == 2
    assert "/nonexistent/config.json:0: model.path: No such file or directory" in frontend.log
    cluster.start_coordinator().wait_log("listening")  # the coordinator needs no model
