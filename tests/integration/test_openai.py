"""The `openai` package as a client: what it sends is understood, and what it gets are its own types."""

from collections.abc import Iterator

import openai
import pytest

from integration import client
from integration.cluster import Cluster
from integration.conftest import NewCluster
from interop import messages as wire
from interop.answers import Step
from interop.tokens import expected

PROMPT = [11, 22, 33]


def make_cluster(new_cluster: NewCluster) -> Cluster:
    cluster = new_cluster(1, limits={"max_in_flight": 4}).start()
    cluster.start_engine(0, tokens_per_step=4)
    return cluster.wait_ready()


@pytest.fixture
def sdk(shared_cluster: Cluster) -> Iterator[openai.OpenAI]:
    url = f"http://127.0.0.1:{shared_cluster.port()}/v1"
    with openai.OpenAI(base_url=url, api_key="-", max_retries=0) as made:
        yield made


def tokens(count: int) -> list[int]:
    return expected(PROMPT, count, client.VOCAB_SIZE)[0]


def test_a_completion(sdk: openai.OpenAI) -> None:
    done = sdk.completions.create(
        model="demo", prompt=PROMPT, max_tokens=6, n=2, logprobs=2, temperature=0.5, extra_body={"ignore_eos": True}
    )
    assert [choice.index for choice in done.choices] == [0, 1]
    for choice in done.choices:
        assert choice.finish_reason == "length" and choice.text == ""
        assert choice.model_extra and choice.model_extra["token_ids"] == tokens(6)
        assert choice.logprobs and choice.logprobs.tokens == [f"token_id:{token}" for token in tokens(6)]
        assert choice.logprobs.top_logprobs and len(choice.logprobs.top_logprobs[1]) == 2
    assert done.usage and (done.usage.prompt_tokens, done.usage.completion_tokens) == (3, 12)


def test_several_prompts(sdk: openai.OpenAI) -> None:
    prompts = [[1, 2], [3]]
    done = sdk.completions.create(
        model="demo", prompt=prompts, max_tokens=3, n=2, extra_body={"ignore_eos": True}
    )
    found = [choice.model_extra["token_ids"] for choice in done.choices if choice.model_extra]
    assert found == [expected(prompts[i // 2], 3, client.VOCAB_SIZE)[0] for i in range(4)]


def test_a_stream_of_two_choices_with_logprobs(sdk: openai.OpenAI) -> None:
    found: dict[int, list[str]] = {0: [], 1: []}
    for chunk in sdk.completions.create(
        model="demo", prompt=PROMPT, max_tokens=9, n=2, logprobs=1, stream=True, extra_body={"ignore_eos": True}
    ):
        for choice in chunk.choices:
            assert choice.logprobs and choice.logprobs.tokens and choice.logprobs.token_logprobs
            assert len(choice.logprobs.token_logprobs) == len(choice.logprobs.tokens)
            found[choice.index] += choice.logprobs.tokens
    wanted = [f"token_id:{token}" for token in tokens(9)]
    assert found == {0: wanted, 1: wanted}


def test_a_stream(sdk: openai.OpenAI) -> None:
    found: list[int] = []
    reasons = []
    usage = None
    for chunk in sdk.completions.create(
        model="demo",
        prompt=PROMPT,
        max_tokens=9,
        stream=True,
        stream_options={"include_usage": True},
        extra_body={"ignore_eos": True},
    ):
        usage = chunk.usage or usage
        for choice in chunk.choices:
            found += choice.model_extra["token_ids"] if choice.model_extra else []
            reasons.append(choice.finish_reason)
    assert found == tokens(9)
    assert [reason for reason in reasons if reason] == ["length"]
    assert usage and usage.total_tokens == 12


def test_the_list_of_models(sdk: openai.OpenAI) -> None:
    assert [model.id for model in sdk.models.list()] == ["demo"]


def test_errors_are_of_its_own_types(sdk: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as bad:
        sdk.completions.create(model="demo", prompt="hello")
    assert (bad.value.code, bad.value.param) == ("invalid_request", "prompt")
    with pytest.raises(openai.NotFoundError) as missing:
        sdk.completions.create(model="gpt-9", prompt=PROMPT)
    assert missing.value.code == "model_not_found"
    with pytest.raises(openai.NotFoundError):
        sdk.chat.completions.create(model="demo", messages=[])


def test_a_failure_of_the_engine_is_an_internal_error(shared_cluster: Cluster, sdk: openai.OpenAI) -> None:
    engine = shared_cluster.engines[0]
    engine.options.script = lambda _: [Step(2), Step(0, finish=wire.FINISH_ERROR)]
    with pytest.raises(openai.InternalServerError) as failed:
        sdk.completions.create(model="demo", prompt=PROMPT, max_tokens=8)
    engine.options.script = None
    assert (failed.value.status_code, failed.value.code) == (500, "engine_request_error")


def test_an_id_that_is_in_use_is_a_conflict(shared_cluster: Cluster, sdk: openai.OpenAI) -> None:
    engine = shared_cluster.engines[0]
    engine.withhold(True)
    count = len(engine.added)
    with client.open_post(shared_cluster.port(), client.generate_body(PROMPT, 4, request_id="x")):
        engine.wait_added(count + 1)
        with pytest.raises(openai.ConflictError) as conflict:
            sdk.completions.create(model="demo", prompt=PROMPT, extra_body={"request_id": "x"})
        assert conflict.value.code == "duplicate_request_id"
    engine.withhold(False)
    shared_cluster.wait_idle()


def test_a_deadline_and_a_cluster_without_engines_have_a_status(new_cluster: NewCluster) -> None:
    cluster = new_cluster(1).start()
    url = f"http://127.0.0.1:{cluster.port()}/v1"
    with openai.OpenAI(base_url=url, api_key="-", max_retries=0) as sdk:
        with pytest.raises(openai.APIStatusError) as nobody:
            sdk.completions.create(model="demo", prompt=PROMPT)
        assert (nobody.value.status_code, nobody.value.response.headers["retry-after"] != "") == (503, True)
        cluster.start_engine(0, withhold=True)
        cluster.wait_ready()
        with pytest.raises(openai.APIStatusError) as late:
            sdk.completions.create(model="demo", prompt=PROMPT, extra_body={"deadline_ms": 100})
        assert (late.value.status_code, late.value.code) == (504, "deadline_exceeded")


def test_a_limit_is_a_rate_limit(shared_cluster: Cluster, sdk: openai.OpenAI) -> None:
    engine = shared_cluster.engines[0]
    engine.withhold(True)
    count = len(engine.added)
    with client.open_post(shared_cluster.port(), client.generate_body(PROMPT, 4, sampling={"n": 4})):
        engine.wait_added(count + 4)
        with pytest.raises(openai.RateLimitError) as limited:
            sdk.completions.create(model="demo", prompt=PROMPT)
        assert limited.value.code == "overloaded"
    engine.withhold(False)
    shared_cluster.wait_idle()


def test_a_failure_in_a_stream_is_raised(shared_cluster: Cluster, sdk: openai.OpenAI) -> None:
    engine = shared_cluster.engines[0]
    engine.options.script = lambda _: [Step(2), Step(0, finish=wire.FINISH_ERROR)]
    found: list[int] = []
    with pytest.raises(openai.APIError) as failed:
        for chunk in sdk.completions.create(model="demo", prompt=PROMPT, max_tokens=8, stream=True):
            found += chunk.choices[0].model_extra["token_ids"] if chunk.choices[0].model_extra else []
    engine.options.script = None
    assert "internal error" in failed.value.message
    assert found == tokens(2)
