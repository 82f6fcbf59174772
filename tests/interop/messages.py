"""The engine protocol (protocol.md 3 to 8) as an engine has it: msgspec structs, and nothing of the C side.

What an engine sends is in the first half. What it receives is in the second half, where each decoder is as strict as
the page: what a real engine would choke on raises Refused, and so does what it would merely put up with.
"""

import math
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct, field

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1

ADD, ABORT, START_DP_WAVE, UTILITY = b"\x00", b"\x01", b"\x02", b"\x03"
SENTINEL = b"ENGINE_CORE_DEAD"
FINISH_STOP, FINISH_LENGTH, FINISH_ABORT, FINISH_ERROR, FINISH_REPETITION = range(5)

encode = msgspec.msgpack.encode


class Refused(Exception):
    """A message that no engine should have been sent, with its bytes."""

    def __init__(self, what: str, data: bytes) -> None:
        super().__init__(f"{what}; the bytes: {data.hex(' ')}")


# --- what an engine sends ---


class EngineCoreOutput(Struct, array_like=True, omit_defaults=True):
    request_id: str
    new_token_ids: list[int]
    new_logprobs: Any = None
    new_prompt_logprobs_tensors: Any = None
    pooling_output: Any = None
    finish_reason: int | None = None
    stop_reason: int | str | None = None
    events: list[dict[str, Any]] | None = None
    kv_transfer_params: dict[str, Any] | None = None
    ec_transfer_params: dict[str, Any] | None = None
    trace_headers: dict[str, str] | None = None
    prefill_stats: dict[str, int] | None = None
    routed_experts: Any = None
    num_nans_in_logits: int = 0


class OlderEngineCoreOutput(Struct, array_like=True, omit_defaults=True):
    """From before ec_transfer_params: all after index 8 is one place lower."""

    request_id: str
    new_token_ids: list[int]
    new_logprobs: Any = None
    new_prompt_logprobs_tensors: Any = None
    pooling_output: Any = None
    finish_reason: int | None = None
    stop_reason: int | str | None = None
    events: list[dict[str, Any]] | None = None
    kv_transfer_params: dict[str, Any] | None = None
    trace_headers: dict[str, str] | None = None
    prefill_stats: dict[str, int] | None = None
    routed_experts: Any = None
    num_nans_in_logits: int = 0


class UtilityOutput(Struct, array_like=True, omit_defaults=True):
    call_id: int
    failure_message: str | None = None
    result: Any = None


class SchedulerStats(Struct):
    num_running_reqs: int = 0
    num_waiting_reqs: int = 0
    num_skipped_waiting_reqs: int = 0
    step_counter: int = 0
    current_wave: int = 0
    kv_cache_usage: float = 0.0
    prefix_cache_stats: dict[str, Any] = field(
        default_factory=lambda: {
            "reset": False,
            "requests": 0,
            "queries": 0,
            "hits": 0,
            "preempted_requests": 0,
            "preempted_queries": 0,
            "preempted_hits": 0,
        }
    )
    connector_prefix_cache_stats: Any = None
    spec_decoding_stats: Any = None
    kv_connector_stats: Any = None


class EngineCoreOutputs(Struct, array_like=True, omit_defaults=True):
    engine_index: int = 0
    outputs: list[Any] = field(default_factory=list)  # of EngineCoreOutput, or OlderEngineCoreOutput
    scheduler_stats: SchedulerStats | None = None
    timestamp: float = 0.0
    utility_output: UtilityOutput | None = None
    finished_requests: list[str] | None = None
    wave_complete: int | None = None
    start_wave: int | None = None


def trimmed(value: Any) -> Any:
    """The same message with the trailing defaults of each array dropped, as some engines send it.

    msgspec itself writes every field of an array_like struct, whatever omit_defaults says: both forms are in use.
    """
    if isinstance(value, list):
        return [trimmed(item) for item in value]
    if not isinstance(value, Struct) or not value.__struct_config__.array_like:
        return value
    names = value.__struct_fields__
    fields = [trimmed(getattr(value, name)) for name in names]
    required = len(names) - len(value.__struct_defaults__)
    blank = type(value)(*[fields[i] for i in range(required)])
    defaults = [getattr(blank, name) for name in names]
    while len(fields) > required and fields[-1] == defaults[len(fields) - 1]:
        fields.pop()
    return fields


def registration(rank: int, max_model_len: int, **changes: Any) -> dict[str, Any]:
    """A ready response with every key of protocol.md 4."""
    return {
        "max_model_len": max_model_len,
        "num_gpu_blocks": 1024,
        "block_size": 16,
        "dp_stats_address": None,
        "dtype": "bfloat16",
        "vllm_version": "0.15.0",
        "world_size": 1,
        "data_parallel_size": 1,
        "tensor_parallel_size": 1,
        "pipeline_parallel_size": 1,
        "decode_context_parallel_size": 1,
        "data_parallel_rank": rank,
        "max_num_seqs": 256,
        "max_num_batched_tokens": 8192,
        "instance_id": f"instance-{rank}",
        "kv_cache_size_tokens": 16384,
        "kv_cache_max_concurrency": 4.0,
        "kv_events_config": None,
    } | changes


# --- what an engine receives ---

Int64 = Annotated[int, Meta(ge=INT64_MIN, le=INT64_MAX)]
Natural = Annotated[int, Meta(ge=0, le=INT64_MAX)]
AllOrCount = Annotated[int, Meta(ge=-1, le=INT64_MAX)]
Penalty = Annotated[float, Meta(ge=-2.0, le=2.0)]
NotEmpty = Annotated[str, Meta(min_length=1)]


class StructuredOutputs(Struct, forbid_unknown_fields=True):
    json: str | dict[str, Any] | None = None
    regex: str | None = None
    choice: list[str] | None = None
    grammar: str | None = None
    json_object: bool | None = None
    structural_tag: str | None = None
    disable_fallback: bool = False
    disable_any_whitespace: bool = False
    disable_additional_properties: bool = False
    whitespace_pattern: str | None = None
    backend: Literal["guidance", "xgrammar", "outlines", "lm-format-enforcer"] | None = field(
        default=None, name="_backend"
    )


STRUCTURED_KINDS = ("json", "regex", "choice", "grammar", "json_object", "structural_tag")


class RepetitionDetection(Struct, forbid_unknown_fields=True):
    max_pattern_size: Natural = 0
    min_pattern_size: Natural = 0
    min_count: Natural = 0


class LoraRequest(Struct, array_like=True, forbid_unknown_fields=True):
    lora_name: NotEmpty
    lora_int_id: Annotated[int, Meta(ge=1, le=INT64_MAX)]
    lora_path: NotEmpty


class SamplingParams(Struct, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    n: Annotated[int, Meta(ge=1, le=1)] = 1
    presence_penalty: Penalty = 0.0
    frequency_penalty: Penalty = 0.0
    repetition_penalty: Annotated[float, Meta(gt=0.0)] = 1.0
    temperature: Annotated[float, Meta(ge=0.0, le=2.0)] = 1.0
    top_p: Annotated[float, Meta(gt=0.0, le=1.0)] = 1.0
    top_k: AllOrCount = 0
    min_p: Annotated[float, Meta(ge=0.0, le=1.0)] = 0.0
    seed: Int64 | None = None
    stop_token_ids: list[Natural] = field(default_factory=list)
    ignore_eos: bool = False
    max_tokens: Annotated[int, Meta(ge=1, le=INT64_MAX)] = 16
    min_tokens: Natural = 0
    logprobs: AllOrCount | None = None
    prompt_logprobs: AllOrCount | None = None
    logprob_token_ids: list[Natural] | None = None
    detokenize: bool = True
    output_kind: Annotated[int, Meta(ge=0, le=2)] = 0
    eos_token_id: Natural | None = field(default=None, name="_eos_token_id")
    all_stop_token_ids: list[Natural] = field(default_factory=list, name="_all_stop_token_ids")
    structured_outputs: StructuredOutputs | None = None
    logit_bias: dict[Natural, float] | None = None
    allowed_token_ids: Annotated[list[Natural], Meta(min_length=1)] | None = None
    extra_args: dict[str, Any] | None = None
    bad_words: list[str] | None = None
    bad_words_token_ids: list[list[Natural]] | None = field(default=None, name="_bad_words_token_ids")
    skip_reading_prefix_cache: bool | None = None
    thinking_token_budget: AllOrCount | None = None
    repetition_detection: RepetitionDetection | None = None


class EngineCoreRequest(Struct, array_like=True, omit_defaults=True, forbid_unknown_fields=True):
    request_id: NotEmpty
    prompt_token_ids: Annotated[list[Natural], Meta(min_length=1)]
    mm_features: None
    sampling_params: SamplingParams
    pooling_params: None
    arrival_time: Annotated[float, Meta(gt=0.0)]
    lora_request: LoraRequest | None
    cache_salt: str | None
    data_parallel_rank: Natural | None
    prompt_embeds: None = None
    prompt_is_token_ids: None = None
    client_index: Natural = 0
    current_wave: Natural = 0
    priority: Int64 = 0
    trace_headers: dict[str, str] | None = None
    resumable: bool = False
    external_req_id: str | None = None
    reasoning_ended: bool | None = None
    reasoning_parser_kwargs: None = None
    abort_immediately: bool = False


class StartDpWave(Struct, array_like=True, forbid_unknown_fields=True):
    wave: Natural
    exclude_engine_index: Natural | None


class UtilityCall(Struct, array_like=True, forbid_unknown_fields=True):
    client_index: Natural
    call_id: Annotated[int, Meta(ge=0)]
    method: NotEmpty
    args: list[Any]


class InitAddresses(Struct, forbid_unknown_fields=True):
    inputs: Annotated[list[NotEmpty], Meta(min_length=1)]
    outputs: Annotated[list[NotEmpty], Meta(min_length=1)]
    coordinator_input: NotEmpty | None
    coordinator_output: NotEmpty | None
    frontend_stats_publish_address: NotEmpty | None


class Init(Struct, forbid_unknown_fields=True):
    addresses: InitAddresses
    parallel_config: dict[str, Any]


class LockstepConfig(Struct, forbid_unknown_fields=True):
    data_parallel_master_ip: NotEmpty
    data_parallel_master_port: Annotated[int, Meta(ge=1, le=65535)]
    master_port_list: list[Annotated[int, Meta(ge=1, le=65535)]] = field(
        name="_data_parallel_master_port_list"
    )
    data_parallel_size: Annotated[int, Meta(ge=1, le=65536)]


def _decode(data: bytes, kind: type, what: str) -> Any:
    try:
        plain = msgspec.msgpack.decode(data)
        message = msgspec.msgpack.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Refused(f"{what}: {error}", data) from error
    if encode(plain) != data:
        raise Refused(f"{what}: a key stands twice, or a value is not in its shortest form", data)
    if not _finite(plain):
        raise Refused(f"{what}: a float is not finite", data)
    return message


def _finite(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        return all(_finite(key) and _finite(item) for key, item in value.items())
    return all(map(_finite, value)) if isinstance(value, list) else True


def _sampling_fault(params: SamplingParams, vocab_size: int) -> str | None:
    """What the types do not say: a rule that two fields share, or one of the model."""
    if params.min_tokens > params.max_tokens:
        return "min_tokens above max_tokens"
    ids = {*params.stop_token_ids, *params.all_stop_token_ids, *(params.allowed_token_ids or ())}
    ids |= {*(params.logprob_token_ids or ()), *(params.logit_bias or ())}
    ids |= {token for word in params.bad_words_token_ids or () for token in word}
    ids |= set() if params.eos_token_id is None else {params.eos_token_id}
    if any(token >= vocab_size for token in ids):
        return "a sampling parameter holds an id outside the vocabulary"
    stops = {*params.stop_token_ids} | (set() if params.eos_token_id is None else {params.eos_token_id})
    if not stops <= {*params.all_stop_token_ids}:
        return "_all_stop_token_ids does not hold every stop id"
    chosen = params.structured_outputs
    if chosen and sum(getattr(chosen, name) is not None for name in STRUCTURED_KINDS) != 1:
        return "structured_outputs must have exactly one kind"
    if chosen and (chosen.json_object is False or chosen.backend is None or chosen.choice == []):
        return "structured_outputs: no engine can work with that"
    repetition = params.repetition_detection
    if repetition and repetition.min_pattern_size > repetition.max_pattern_size:
        return "repetition_detection: min_pattern_size above max_pattern_size"
    if repetition and repetition.max_pattern_size > 0 and repetition.min_count < 2:
        return "repetition_detection: min_count below 2"
    return None


def decode_add(data: bytes, vocab_size: int) -> EngineCoreRequest:
    add: EngineCoreRequest = _decode(data, EngineCoreRequest, "ADD")
    if any(token >= vocab_size for token in add.prompt_token_ids):
        raise Refused("ADD: prompt_token_ids holds an id outside the vocabulary", data)
    fault = _sampling_fault(add.sampling_params, vocab_size)
    if fault:
        raise Refused(f"ADD: {fault}", data)
    return add


def explicit_defaults(data: bytes) -> list[str]:
    """The sampling parameters of an ADD that are on the wire although they have their default."""
    sent: dict[str, Any] = msgspec.msgpack.decode(data)[3]
    defaults = SamplingParams()
    names = zip(SamplingParams.__struct_encode_fields__, SamplingParams.__struct_fields__, strict=True)
    return sorted(key for key, name in names if key in sent and sent[key] == getattr(defaults, name))


def decode_abort(data: bytes) -> list[str]:
    return _decode(data, list[str], "ABORT")


def decode_start_wave(data: bytes) -> StartDpWave:
    return _decode(data, StartDpWave, "START_DP_WAVE")


def decode_utility(data: bytes) -> UtilityCall:
    return _decode(data, UtilityCall, "UTILITY")


def decode_init(data: bytes) -> Init:
    init: Init = _decode(data, Init, "INIT")
    addresses = init.addresses
    if len(addresses.inputs) != len(addresses.outputs):
        raise Refused("INIT: as many inputs as outputs are needed", data)
    stats = [addresses.coordinator_input, addresses.coordinator_output]
    if (stats[0] is None) != (stats[1] is None):
        raise Refused("INIT: one coordinator address without the other", data)
    for address in [*addresses.inputs, *addresses.outputs, *filter(None, stats)]:
        if not address.startswith(("tcp://", "ipc://")):
            raise Refused(f"INIT: {address} is not an address", data)
    if init.parallel_config:
        _decode(encode(init.parallel_config), LockstepConfig, "INIT parallel_config")
    return init
