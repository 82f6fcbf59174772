"""POST /v1/completions for prompts of token ids: OpenAI's shape, with the ids beside an empty text."""

import time
from typing import Any

import pytest

from integration import client
from integration.cluster import Cluster
from integration.conftest import NewCluster
from interop.tokens import expected

PROMPT = [11, 22, 33]


def make_cluster(new_cluster: NewCluster) -> Cluster:
    cluster = new_cluster(2).start()
    cluster.start_engines(tokens_per_step=4)
    return cluster.wait_ready()


def post(cluster: Cluster, **fields: Any) -> client.Answer:
    return client.post(cluster.port(), {"ignore_eos": True} | fields, path=client.COMPLETIONS)


def tokens(prompt: list[int], count: int) -> list[int]:
    return expected(prompt, count, client.VOCAB_SIZE)[0]


def choice(index: int, prompt: list[int], count: int) -> dict[str, Any]:
    return {
        "index": index,
        "text": "",
        "token_ids": tokens(prompt, count),
        "logprobs": None,
        "finish_reason": "length",
        "prompt_logprobs": None,
    }


def test_an_answer_has_openais_shape_and_sixteen_tokens_by_default(shared_cluster: Cluster) -> None:
    answer = post(shared_cluster, prompt=PROMPT, model="demo")
    document = answer.json()
    assert abs(document.pop("created") - time.time()) < 60
    identity = document.pop("id")
    assert identity.startswith("cmpl-") and identity == answer.headers["x-request-id"]
    assert document == {
        "object": "text_completion",
        "model": "demo",
        "choices": [choice(0, PROMPT, 16)],
        "usage": {"prompt_tokens": 3, "completion_tokens": 16, "total_tokens": 19},
        "kv_transfer_params": None,
        "ec_transfer_params": None,
    }


def test_several_prompts_with_n_choices_each(shared_cluster: Cluster) -> None:
    prompts = [[1, 2], [3], [4, 5, 6]]
    document = post(shared_cluster, prompt=prompts, n=2, max_tokens=5).json()
    wanted = [choice(i, prompts[i // 2], 5) for i in range(6)]
    assert document["choices"] == wanted
    assert document["usage"] == {"prompt_tokens": 6, "completion_tokens": 30, "total_tokens": 36}


def test_a_stream_has_chunks_of_one_object_and_then_the_usage(shared_cluster: Cluster) -> None:
    body = {"prompt": PROMPT, "max_tokens": 10, "stream": True, "ignore_eos": True}
    body["stream_options"] = {"include_usage": True}
    with client.open_post(shared_cluster.port(), body, path=client.COMPLETIONS) as stream:
        *chunks, last, done = stream.events()
    assert done == client.DONE
    assert len({chunk["id"] for chunk in chunks}) == 1
    assert all(chunk["object"] == "text_completion" and "usage" not in chunk for chunk in chunks)
    assert [token for chunk in chunks for token in chunk["choices"][0]["token_ids"]] == tokens(PROMPT, 10)
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None, None, "length"]
    assert last["choices"] == [] and last["usage"]["total_tokens"] == 13


@pytest.mark.parametrize("prompt", ["hello", ["hello", "there"], "", ["a"]])
def test_a_text_prompt_is_told_where_to_tokenize(shared_cluster: Cluster, prompt: Any) -> None:
    error = client.error_of(post(shared_cluster, prompt=prompt), 400, "invalid_request")
    assert error["param"] == "prompt" and "tokenize" in error["message"]


@pytest.mark.parametrize("prompt", [None, [], [[]], [[1], []], 5, {}, [[1], 2], [1, [2]], [None], [[1], ["a"]]])
def test_what_is_no_prompt_is_refused(shared_cluster: Cluster, prompt: Any) -> None:
    error = client.error_of(post(shared_cluster, prompt=prompt), 400, "invalid_request")
    assert error["param"] == "prompt"


@pytest.mark.parametrize(
    ("field", "value", "code"),
    [
        ("echo", True, "unsupported_field"),
        ("suffix", "end", "unsupported_field"),
        ("stop", ["end"], "unsupported_field"),
        ("token_ids", [1], "unsupported_field"),
        ("sampling_params", {}, "unsupported_field"),
        ("best_of", 2, "invalid_request"),
        ("max_tokens", 0, "invalid_request"),
        ("n", 17, "invalid_request"),
        ("logprobs", 21, "invalid_request"),
        ("temperature", 2.5, "invalid_request"),
        ("model", "gpt", "model_not_found"),
    ],
)
def test_a_field_that_cannot_be_honoured_is_refused(
    shared_cluster: Cluster, field: str, value: Any, code: str
) -> None:
    answer = post(shared_cluster, **{"prompt": PROMPT, field: value})
    error = client.error_of(answer, 404 if code == "model_not_found" else 400, code)
    assert error["param"] == field


def test_what_changes_nothing_is_accepted(shared_cluster: Cluster) -> None:
    answer = post(
        shared_cluster,
        prompt=PROMPT,
        max_tokens=2,
        best_of=1,
        echo=False,
        suffix=None,
        stop=None,
        user="me",
        return_token_ids=True,
        skip_special_tokens=False,
    )
    assert answer.status == 200, bytes(answer.body)


def test_more_prompts_than_the_limit_are_refused(shared_cluster: Cluster) -> None:
    assert post(shared_cluster, prompt=[[1]] * 64, max_tokens=1).status == 200
    error = client.error_of(post(shared_cluster, prompt=[[1]] * 65, max_tokens=1), 400, "invalid_request")
    assert "65 prompts" in error["message"]
    shared_cluster.wait_idle()
