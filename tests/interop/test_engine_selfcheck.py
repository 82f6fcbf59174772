"""The test engine itself: it must refuse what a real engine chokes on, and start and serve as protocol.md says."""

import struct
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
import zmq

from interop import golden
from interop import messages as wire
from interop.engine import Engine
from interop.tokens import TokenSource, expected, fnv1a, splitmix64

VOCAB = 32000
MINIMAL: list[Any] = ["r-1", [1, 2, 3], None, {}, None, 1.0, None, None, None]


def add(index: int, value: Any) -> bytes:
    """An ADD with all 20 fields, one of them changed."""
    rest = [None, None, 1, 0, 0, None, False, None, None, None, False]
    fields = MINIMAL + rest
    fields[index] = value
    return msgspec.msgpack.encode(fields)


def sampled(**params: Any) -> bytes:
    return add(3, params)


def structured(**members: Any) -> bytes:
    return sampled(structured_outputs={"_backend": "guidance"} | members)


def repetition(**members: Any) -> bytes:
    return sampled(repetition_detection=members)


def test_tokens_are_the_documented_function() -> None:
    foob = int.from_bytes(b"foob", "little")
    assert fnv1a([foob]) == 0xDD120E790C2512AF  # a published vector of FNV-1a 64
    assert splitmix64(0) == 0xE220A8397B1DCDAF  # and one of splitmix64
    assert TokenSource([foob], 2**64)[1] == splitmix64(0xDD120E790C2512B0)
    assert expected([1, 2, 3], 4, VOCAB)[1] == "length"


def test_a_request_with_only_the_needed_fields_is_accepted() -> None:
    request = wire.decode_add(msgspec.msgpack.encode(MINIMAL), VOCAB)
    assert request.sampling_params.max_tokens == 16
    assert (request.client_index, request.external_req_id, request.abort_immediately) == (0, None, False)


def test_a_request_with_every_field_is_accepted() -> None:
    params = {
        "temperature": 0.5,
        "top_p": 1,  # an int may stand for a float
        "seed": wire.INT64_MIN,
        "stop_token_ids": [5],
        "_eos_token_id": 2,
        "_all_stop_token_ids": [5, 2],
        "logprobs": -1,
        "prompt_logprobs": 0,
        "logprob_token_ids": [VOCAB - 1],
        "allowed_token_ids": [0],
        "structured_outputs": {"regex": "a+", "_backend": "guidance", "whitespace_pattern": " "},
        "logit_bias": {7: -1.5, 8: 1},
        "extra_args": {"kv_transfer_params": {"deep": [1, {"a": None}]}},
        "skip_reading_prefix_cache": False,
        "thinking_token_budget": -1,
        "repetition_detection": {"max_pattern_size": 4, "min_pattern_size": 1, "min_count": 2},
    }
    assert wire.decode_add(sampled(**params), VOCAB).sampling_params.logit_bias == {7: -1.5, 8: 1.0}
    assert wire.decode_add(add(6, ["sql", 1, "/loras/sql"]), VOCAB).lora_request == wire.LoraRequest(
        "sql", 1, "/loras/sql"
    )
    headers = {"traceparent": "00-a-b-01", "tracestate": "v=ü"}
    assert wire.decode_add(add(14, headers), VOCAB).trace_headers == headers


@pytest.mark.parametrize(
    "chosen", [{"json": {"a": 1}}, {"json": "{}"}, {"choice": ["a"]}, {"grammar": "x"}, {"json_object": True}]
)
def test_every_kind_of_structure_is_accepted(chosen: dict[str, Any]) -> None:
    assert wire.decode_add(structured(**chosen), VOCAB).sampling_params.structured_outputs


BAD_ADDS: dict[str, bytes] = {
    "truncated": add(0, "r-1")[:-1],
    "bytes_after_the_end": add(0, "r-1") + b"\xc0",
    "not_an_array": msgspec.msgpack.encode({"request_id": "r-1"}),
    "too_short": msgspec.msgpack.encode(MINIMAL[:8]),
    "too_long": msgspec.msgpack.encode(msgspec.msgpack.decode(add(0, "r-1")) + [None]),
    "id_is_an_int": add(0, 7),
    "id_is_bytes": add(0, b"r-1"),
    "id_is_not_utf8": add(0, "\x7f\x7f").replace(b"\x7f\x7f", b"\xff\xfe"),
    "id_is_a_surrogate": add(0, "\x7f\x7f\x7f").replace(b"\x7f\x7f\x7f", b"\xed\xa0\x80"),
    "id_is_empty": add(0, ""),
    "prompt_is_nil": add(1, None),
    "prompt_is_empty": add(1, []),
    "prompt_holds_a_float": add(1, [1, 2.0]),
    "prompt_holds_a_bool": add(1, [True]),
    "prompt_holds_a_negative_id": add(1, [-1]),
    "prompt_holds_an_id_outside_the_vocabulary": add(1, [VOCAB]),
    "mm_features_are_set": add(2, []),
    "sampling_params_are_nil": add(3, None),
    "sampling_params_are_an_array": add(3, []),
    "pooling_params_are_set": add(4, {}),
    "arrival_time_is_text": add(5, "now"),
    "arrival_time_is_nil": add(5, None),
    "arrival_time_is_not_finite": add(5, float("inf")),
    "lora_id_is_zero": add(6, ["name", 0, "/path"]),
    "lora_path_is_empty": add(6, ["name", 1, ""]),
    "lora_name_is_empty": add(6, ["", 1, "/path"]),
    "lora_id_is_text": add(6, ["name", "1", "/path"]),
    "lora_has_no_path": add(6, ["name", 1]),
    "lora_has_more_than_a_path": add(6, ["name", 1, "/path", None]),
    "lora_is_a_map": add(6, {"lora_name": "name", "lora_int_id": 1, "lora_path": "/path"}),
    "cache_salt_is_an_int": add(7, 3),
    "cache_salt_is_not_utf8": add(7, "\x7f\x7f").replace(b"\x7f\x7f", b"\xff\xfe"),
    "data_parallel_rank_is_a_float": add(8, 1.0),
    "data_parallel_rank_is_negative": add(8, -1),
    "prompt_embeds_are_set": add(9, []),
    "client_index_is_nil": add(11, None),
    "client_index_is_negative": add(11, -1),
    "current_wave_is_text": add(12, "0"),
    "priority_is_above_int64": add(13, 2**63),
    "priority_is_a_float": add(13, 0.0),
    "trace_headers_are_an_array": add(14, [["traceparent", "1"]]),
    "trace_headers_hold_an_int": add(14, {"traceparent": 1}),
    "trace_headers_are_not_utf8": add(14, {"k": "\x7f\x7f"}).replace(b"\x7f\x7f", b"\xc0\x80"),
    "resumable_is_an_int": add(15, 0),
    "external_req_id_is_an_int": add(16, 1),
    "external_req_id_is_not_utf8": add(16, "\x7f\x7f").replace(b"\x7f\x7f", b"\xc0\xaf"),
    "reasoning_ended_is_an_int": add(17, 1),
    "reasoning_parser_kwargs_are_set": add(18, {}),
    "abort_immediately_is_nil": add(19, None),
    "a_key_stands_twice": sampled(seed=1, seee=1).replace(b"seee", b"seed"),
    "a_parameter_is_unknown": sampled(temprature=1.0),
    "n_is_2": sampled(n=2),
    "presence_penalty_is_too_high": sampled(presence_penalty=2.1),
    "presence_penalty_is_too_low": sampled(presence_penalty=-2.1),
    "frequency_penalty_is_too_high": sampled(frequency_penalty=2.1),
    "frequency_penalty_is_too_low": sampled(frequency_penalty=-2.1),
    "repetition_penalty_is_zero": sampled(repetition_penalty=0.0),
    "repetition_penalty_is_infinite": sampled(repetition_penalty=float("inf")),
    "temperature_is_negative": sampled(temperature=-0.1),
    "temperature_is_too_high": sampled(temperature=2.5),
    "temperature_is_text": sampled(temperature="1"),
    "temperature_is_a_bool": sampled(temperature=True),
    "temperature_is_not_a_number": sampled(temperature=float("nan")),
    "top_p_is_zero": sampled(top_p=0.0),
    "top_p_is_above_1": sampled(top_p=1.01),
    "top_k_is_below_minus_1": sampled(top_k=-2),
    "top_k_is_a_float": sampled(top_k=5.0),
    "min_p_is_negative": sampled(min_p=-0.5),
    "min_p_is_above_1": sampled(min_p=1.5),
    "seed_is_above_int64": sampled(seed=2**63),
    "seed_is_a_float": sampled(seed=1.0),
    "max_tokens_is_zero": sampled(max_tokens=0),
    "max_tokens_is_nil": sampled(max_tokens=None),
    "max_tokens_is_above_int64": sampled(max_tokens=2**63),
    "min_tokens_is_negative": sampled(min_tokens=-1),
    "min_tokens_is_above_max_tokens": sampled(min_tokens=17),
    "ignore_eos_is_an_int": sampled(ignore_eos=1),
    "detokenize_is_nil": sampled(detokenize=None),
    "output_kind_is_unknown": sampled(output_kind=3),
    "logprobs_are_below_minus_1": sampled(logprobs=-2),
    "logprobs_are_a_float": sampled(logprobs=1.0),
    "prompt_logprobs_are_below_minus_1": sampled(prompt_logprobs=-2),
    "prompt_logprobs_are_a_bool": sampled(prompt_logprobs=True),
    "logprob_token_ids_hold_text": sampled(logprob_token_ids=["1"]),
    "a_logprob_id_is_outside_the_vocabulary": sampled(logprob_token_ids=[1, VOCAB]),
    "stop_token_ids_are_nil": sampled(stop_token_ids=None),
    "a_stop_id_is_missing_from_all": sampled(stop_token_ids=[4], _all_stop_token_ids=[5]),
    "the_eos_id_is_missing_from_all": sampled(_eos_token_id=2),
    "a_stop_id_is_outside_the_vocabulary": sampled(stop_token_ids=[VOCAB], _all_stop_token_ids=[VOCAB]),
    "an_id_of_all_stops_is_outside_the_vocabulary": sampled(_all_stop_token_ids=[VOCAB]),
    "the_eos_id_is_outside_the_vocabulary": sampled(_eos_token_id=VOCAB, _all_stop_token_ids=[VOCAB]),
    "allowed_token_ids_are_empty": sampled(allowed_token_ids=[]),
    "an_allowed_id_is_negative": sampled(allowed_token_ids=[-1]),
    "an_allowed_id_is_outside_the_vocabulary": sampled(allowed_token_ids=[VOCAB]),
    "a_bias_id_is_text": sampled(logit_bias={"7": 1.0}),
    "a_bias_id_is_negative": sampled(logit_bias={-7: 1.0}),
    "a_bias_id_is_outside_the_vocabulary": sampled(logit_bias={VOCAB: 1.0}),
    "a_bias_is_text": sampled(logit_bias={7: "1"}),
    "a_bias_is_not_finite": sampled(logit_bias={7: float("-inf")}),
    "a_bias_id_stands_twice": sampled(logit_bias={7: 1.0, 8: 1.0}).replace(b"\x08\xcb", b"\x07\xcb"),
    "bad_words_hold_an_int": sampled(bad_words=[1]),
    "a_bad_word_is_outside_the_vocabulary": sampled(_bad_words_token_ids=[[1], [VOCAB]]),
    "skip_reading_prefix_cache_is_an_int": sampled(skip_reading_prefix_cache=0),
    "two_kinds_of_structure": structured(regex="a", json="{}"),
    "no_kind_of_structure": structured(),
    "a_structure_without_its_compiler": sampled(structured_outputs={"regex": "a"}),
    "a_structure_with_an_unknown_compiler": structured(regex="a", _backend="auto"),
    "an_unknown_kind_of_structure": structured(regex="a", ebnf="x"),
    "a_structure_that_is_text": sampled(structured_outputs="json"),
    "a_regex_that_is_an_int": structured(regex=1),
    "a_choice_of_nothing": structured(choice=[]),
    "a_choice_of_ints": structured(choice=[1]),
    "a_json_object_that_is_not_wanted": structured(json_object=False),
    "a_structural_tag_that_is_a_map": structured(structural_tag={}),
    "a_fallback_that_is_an_int": structured(regex="a", disable_fallback=1),
    "a_whitespace_pattern_that_is_an_int": structured(regex="a", whitespace_pattern=1),
    "thinking_budget_below_minus_1": sampled(thinking_token_budget=-2),
    "thinking_budget_is_a_float": sampled(thinking_token_budget=1.0),
    "repetition_min_above_max": repetition(max_pattern_size=1, min_pattern_size=2, min_count=2),
    "repetition_count_of_1": repetition(max_pattern_size=2, min_count=1),
    "repetition_size_is_negative": repetition(max_pattern_size=-1),
    "repetition_count_is_a_float": repetition(max_pattern_size=2, min_count=2.0),
    "repetition_has_an_unknown_member": repetition(later=1),
    "extra_args_are_an_array": sampled(extra_args=[]),
    "extra_args_hold_what_is_not_finite": sampled(extra_args={"a": [{"b": float("inf")}]}),
    "extra_args_hold_an_int_as_a_key": sampled(extra_args={1: 1}),
    "a_float_of_4_bytes": sampled(top_p=0.5).replace(
        struct.pack(">Bd", 0xCB, 0.5), struct.pack(">Bf", 0xCA, 0.5)
    ),
    "extra_args_hold_broken_text": sampled(extra_args={"a": "\x7f\x7f"}).replace(b"\x7f\x7f", b"\xc3\x28"),
}


@pytest.mark.parametrize("name", BAD_ADDS)
def test_the_strict_decoder_refuses_a_bad_add(name: str) -> None:
    assert BAD_ADDS[name] != add(0, "r-1"), "a change that changed nothing"
    with pytest.raises(wire.Refused, match="the bytes: "):
        wire.decode_add(BAD_ADDS[name], VOCAB)


@pytest.mark.parametrize("data", [b"\xc0", b"\xa1a", b"\x91\x01", b"\x91\xa1\xff", b"\x80", b"", b"\x91"])
def test_the_strict_decoder_refuses_a_bad_abort(data: bytes) -> None:
    with pytest.raises(wire.Refused):
        wire.decode_abort(data)


def test_an_abort_of_nothing_is_accepted() -> None:
    assert wire.decode_abort(b"\x90") == []


def test_explicit_defaults_are_found() -> None:
    assert wire.explicit_defaults(sampled(temperature=1.0, top_p=0.5, max_tokens=16)) == [
        "max_tokens",
        "temperature",
    ]


def test_trailing_defaults_are_trimmed_at_every_level() -> None:
    outputs = wire.EngineCoreOutputs(engine_index=3, outputs=[wire.EngineCoreOutput("r", [1])])
    assert wire.trimmed(outputs) == [3, [["r", [1]]]]
    assert wire.trimmed(wire.EngineCoreOutputs()) == []


# --- a whole life against a coordinator and a frontend of a few lines ---


class Peers:
    """Our side of every socket of one engine."""

    def __init__(self) -> None:
        self.context = zmq.Context()
        kinds = {
            "handshake": zmq.ROUTER,
            "slot_input": zmq.ROUTER,
            "slot_output": zmq.PULL,
            "input": zmq.ROUTER,
            "output": zmq.PULL,
            "publish": zmq.XPUB,
            "stats": zmq.PULL,
        }
        self.address: dict[str, str] = {}
        self.socket: dict[str, zmq.Socket[bytes]] = {}
        for name, kind in kinds.items():
            socket = self.context.socket(kind)
            socket.setsockopt(zmq.RCVTIMEO, 10000)
            port = socket.bind_to_random_port("tcp://127.0.0.1")
            self.address[name] = f"tcp://127.0.0.1:{port}"
            self.socket[name] = socket

    def answer_hello(self, identity: bytes) -> Any:
        sender, hello = self.socket["handshake"].recv_multipart()
        assert sender == identity
        at = self.address
        addresses = {
            "inputs": [at["slot_input"], at["input"]],
            "outputs": [at["slot_output"], at["output"]],
            "coordinator_input": at["publish"],
            "coordinator_output": at["stats"],
            "frontend_stats_publish_address": None,
        }
        init = {"addresses": addresses, "parallel_config": {}}
        self.socket["handshake"].send_multipart([identity, msgspec.msgpack.encode(init)])
        return msgspec.msgpack.decode(hello)


@pytest.fixture
def peers() -> Iterator[Peers]:
    peers = Peers()
    yield peers
    peers.context.destroy(linger=0)


@pytest.fixture
def start(peers: Peers) -> Iterator[Callable[..., Engine]]:
    """Starts an engine and leads it to where it serves."""
    started: list[Engine] = []

    def start(**options: Any) -> Engine:
        engine = Engine(peers.address["handshake"], 258, **options).start()
        started.append(engine)
        identity = b"\x02\x01"
        assert peers.answer_hello(identity) == {"status": "HELLO", "local": False, "headless": True}
        for socket in (peers.socket["slot_input"], peers.socket["input"]):
            sender, payload = socket.recv_multipart()
            assert sender == identity and msgspec.msgpack.decode(payload)["data_parallel_rank"] == 258
        assert peers.socket["publish"].recv() == b"\x01" and engine.phase == "init"
        peers.socket["publish"].send(b"READY")
        assert msgspec.msgpack.decode(peers.socket["handshake"].recv_multipart()[1])["status"] == "READY"
        return engine.wait_serving()

    yield start
    for engine in started:
        engine.close()


def request(wire_id: str, max_tokens: int) -> bytes:
    fields = MINIMAL.copy()
    fields[0], fields[3] = wire_id, {"max_tokens": max_tokens}
    return msgspec.msgpack.encode([*fields, None, None, 1])


@pytest.mark.parametrize("trim", [False, True])
def test_the_engine_starts_and_serves(peers: Peers, start: Callable[..., Engine], trim: bool) -> None:
    start(trim=trim)
    peers.socket["input"].send_multipart([b"\x02\x01", wire.ADD, request("r-1", 10)])
    tokens: list[int] = []
    outputs: list[Any] = []
    while not outputs or outputs[-1].finish_reason is None:
        message = msgspec.msgpack.decode(peers.socket["output"].recv(), type=wire.EngineCoreOutputs)
        outputs += [msgspec.convert(item, wire.EngineCoreOutput) for item in message.outputs]
        tokens += outputs[-1].new_token_ids
    assert (tokens, "length") == expected([1, 2, 3], 10, VOCAB)
    assert outputs[0].prefill_stats["num_prompt_tokens"] == 3 and outputs[1].prefill_stats is None


def test_an_aborted_request_is_named_and_says_no_more(peers: Peers, start: Callable[..., Engine]) -> None:
    engine = start(withhold=True)
    peers.socket["input"].send_multipart([b"\x02\x01", wire.ADD, request("r-1", 10)])
    engine.wait_added()
    peers.socket["input"].send_multipart(
        [b"\x02\x01", wire.ABORT, msgspec.msgpack.encode(["r-1", "never seen"])]
    )
    engine.wait_aborted("r-1")
    message = msgspec.msgpack.decode(peers.socket["output"].recv(), type=wire.EngineCoreOutputs)
    assert (message.outputs, message.finished_requests, engine.requests) == ([], ["r-1"], {})


def test_a_bad_add_fails_the_test_with_its_bytes(peers: Peers, start: Callable[..., Engine]) -> None:
    engine = start()
    peers.socket["input"].send_multipart([b"\x02\x01", wire.ADD, b"\x93\x01"])
    with pytest.raises(AssertionError, match="input:1: ADD: .*; the bytes: 93 01"):
        engine.wait_added()
    engine.failures.clear()


def test_the_golden_vectors_and_the_fuzzers_seeds_are_up_to_date() -> None:
    for path, content in golden.files().items():
        assert path.read_bytes() == content, path
