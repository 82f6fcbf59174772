"""What the test engine answers, and what the tests compare answers with: tensors, scripts, bodies and their meaning."""

import json
import math
import struct
from typing import Any

import msgspec
import pytest

from interop import messages as wire
from interop.answers import AnswerOptions, Request, Step
from interop.bodies import Generator, Wanted
from interop.reference import Reference
from interop.tensors import Packer, Row, row
from interop.tokens import TokenSource

VOCAB = 32000
PROMPT = [1, 2, 3]


def request(params: dict[str, Any], **options: Any) -> Request:
    add = wire.EngineCoreRequest(
        request_id="r-1",
        prompt_token_ids=PROMPT,
        mm_features=None,
        sampling_params=msgspec.convert(params, wire.SamplingParams),
        pooling_params=None,
        arrival_time=1.0,
        lora_request=None,
        cache_salt=None,
        data_parallel_rank=None,
    )
    return Request(add, b"", AnswerOptions(**options))


def numbers(tensor: list[Any], frames: list[bytes]) -> tuple[Any, ...]:
    """The numbers of a tensor, read by other code than wrote them."""
    dtype, shape, data = tensor
    content = frames[data - 1] if isinstance(data, int) else data.data
    letter = {"<i4": "i", "int32": "i", "<i8": "q", "int64": "q", "<f4": "f", "float32": "f"}[dtype]
    return struct.unpack(f"<{math.prod(shape)}{letter}", content)


# --- tensors ---


@pytest.mark.parametrize("names", ["numpy", "torch"])
@pytest.mark.parametrize("inline_below", [0, 256])
@pytest.mark.parametrize("wide", [False, True])
def test_a_tensor_says_what_it_was_made_of(names: str, inline_below: int, wide: bool) -> None:
    packer = Packer(names, inline_below)
    rows = [row(token, place, 3, VOCAB) for place, token in enumerate([5, 31999, 0])]
    ids, values, ranks, nothing = packer.logprobs(rows, wide)
    assert numbers(ids, packer.frames) == tuple(token for each in rows for token in each.ids)
    assert numbers(values, packer.frames) == tuple(value for each in rows for value in each.values)
    assert numbers(ranks, packer.frames) == tuple(each.rank for each in rows)
    assert (ids[1], values[1], ranks[1], nothing) == ([3, 4], [3, 4], [3], None)
    assert len(packer.frames) == (3 if inline_below == 0 else 0)


def test_a_tensor_of_256_bytes_has_a_frame_of_its_own() -> None:
    packer = Packer("numpy", 256)
    assert isinstance(packer.tensor([0] * 63, "i4")[2], msgspec.msgpack.Ext)
    assert packer.tensor([0] * 64, "i4")[2] == 1
    assert packer.tensor([0] * 64, "i4")[2] == 2
    assert [len(frame) for frame in packer.frames] == [256, 256]


def test_rows_have_the_token_among_the_likeliest_and_not() -> None:
    rows = [row(token, place, 5, VOCAB) for place, token in enumerate(range(100, 142))]
    repeated = [each for each in rows if each.ids[0] in each.ids[1:]]
    assert 0 < len(repeated) < len(rows)
    assert all(each.ids[1] == each.ids[0] and each.values[1] == each.values[0] for each in repeated)
    assert all(each.rank == 1 for each in repeated)
    assert any(each.values[-1] == -math.inf for each in rows)
    assert all(value <= 0 for each in rows for value in each.values)


def test_a_client_sees_each_id_once_and_no_infinity() -> None:
    assert Row([5, 5, 6], [-1.0, -1.0, -math.inf], 1).shown(3) == [(5, -1.0), (6, -9999.0)]
    assert Row([5, 6, 7], [-9.0, -1.0, -2.0], 3).shown(2) == [(5, -9.0), (6, -1.0)]
    assert Row([5], [-9.0], 3).shown(0) == []


# --- answers ---


def test_tensors_are_there_when_they_were_asked_for() -> None:
    asked = request({"logprobs": 2, "prompt_logprobs": 1, "max_tokens": 8})
    packer = Packer("numpy", 256)
    first, second = asked.advance(packer), asked.advance(packer)
    assert first.new_logprobs[0][1] == [4, 3] and first.new_prompt_logprobs_tensors[0][1] == [2, 2]
    assert second.new_logprobs[0][1] == [4, 3] and second.new_prompt_logprobs_tensors is None
    assert second.finish_reason == wire.FINISH_LENGTH and asked.has_ended
    plain = request({"max_tokens": 8}).advance(packer)
    assert (plain.new_logprobs, plain.new_prompt_logprobs_tensors) == (None, None)


def test_a_script_is_played_step_by_step() -> None:
    steps = [Step(3), Step(0), Step(2, wire.FINISH_STOP, stop_reason="end")]
    played = request({"max_tokens": 16}, script=lambda _: list(steps))
    packer = Packer("numpy", 256)
    outputs = [played.advance(packer) for _ in steps]
    source = TokenSource(PROMPT, VOCAB)
    first, nothing, last = (output.new_token_ids for output in outputs)
    assert (first, nothing, last) == ([source[0], source[1], source[2]], [], [source[3], source[4]])
    assert [output.finish_reason for output in outputs] == [None, None, wire.FINISH_STOP]
    assert outputs[2].stop_reason == "end" and played.has_ended


def test_a_script_may_end_without_an_output_or_with_the_engine() -> None:
    named = request({}, script=lambda _: [Step(0, named_only=True)])
    assert named.advance(Packer("numpy", 256)) is None and named.has_ended
    dying = request({}, script=lambda _: [Step(1), Step(0, dies=True)])
    assert not dying.kills_the_engine
    dying.advance(Packer("numpy", 256))
    assert dying.kills_the_engine


def test_a_prompt_is_cached_as_far_as_it_goes() -> None:
    for told, cached in ((0, 0), (2, 2), (9, 3)):
        stats = request({}, cached_tokens=told).advance(Packer("numpy", 256)).prefill_stats
        assert (stats["num_cached_tokens"], stats["num_prompt_tokens"]) == (cached, 3)


@pytest.mark.parametrize("older", [False, True])
def test_transfer_params_come_back_with_the_last_output(older: bool) -> None:
    extra = {"kv_transfer_params": {"a": 1}, "ec_transfer_params": {"b": 2}}
    echoed = request({"extra_args": extra, "max_tokens": 8}, echo_transfer_params=True, older=older)
    first, last = echoed.advance(Packer("numpy", 256)), echoed.advance(Packer("numpy", 256))
    assert first.kv_transfer_params is None and last.kv_transfer_params == {"a": 1}
    assert older or last.ec_transfer_params == {"b": 2}


# --- bodies ---


def test_a_seed_makes_the_same_bodies() -> None:
    one, other = Generator(5), Generator(5)
    assert [one.body() for _ in range(200)] == [other.body() for _ in range(200)]
    assert Generator(6).body() != Generator(5).body()


def test_a_right_body_is_text_that_says_its_fields() -> None:
    generator = Generator(1)
    served = [body for body in (generator.body() for _ in range(500)) if body.wanted == Wanted.SERVED]
    assert len(served) > 200
    for body in served:
        assert json.loads(body.text) == body.fields
        assert Reference(body).choices


def test_the_reference_follows_the_page() -> None:
    generator = Generator(1)
    body = next(body for body in (generator.body() for _ in range(500)) if body.wanted == Wanted.SERVED)
    body.path, body.headers = "/v1/completions", []
    body.fields = {"prompt": [[1, 2], [3]], "n": 2, "seed": 4, "stop_token_ids": [9], "logit_bias": {"5": 1}}
    reference = Reference(body)
    params = reference.sampling([1, 2], 1)
    assert (params.seed, params.max_tokens, params.logit_bias) == (5, 16, {5: 1.0})
    assert (params.stop_token_ids, params.all_stop_token_ids, params.eos_token_id) == ([9, 7], [9, 7, 2], 2)
    assert len(reference.choices) == 4 and reference.usage()["prompt_tokens"] == 3
    body.fields |= {"ignore_eos": True}
    params = Reference(body).sampling([1, 2], 0)
    assert (params.stop_token_ids, params.all_stop_token_ids, params.eos_token_id) == ([9], [9, 7, 2], None)
