"""Messages of the engine protocol as msgspec encodes them: what golden.py makes C arrays of, and seeds.py the fuzzers'
beginnings."""

import struct
from typing import Any

import msgspec

from interop import messages as wire

EXT_RAW = 3  # bytes inline

Vectors = dict[str, bytes]


def handshake() -> Vectors:
    status = {"local": False, "headless": True}
    values: dict[str, Any] = {
        "hello": {"status": "HELLO"} | status,
        "ready": {"status": "READY"} | status,
        "ready_with_hash": {"status": "READY"} | status | {"parallel_config_hash": "a5f3c0de"},
    }
    return {name: wire.encode(value) for name, value in values.items()}


def inits() -> Vectors:
    one = {
        "inputs": ["tcp://127.0.0.1:29555"],
        "outputs": ["tcp://127.0.0.1:29556"],
        "coordinator_input": None,
        "coordinator_output": None,
        "frontend_stats_publish_address": None,
    }
    two = one | {
        "inputs": ["tcp://127.0.0.1:29555", "ipc:///tmp/wg/fe0-input"],
        "outputs": ["tcp://127.0.0.1:29556", "ipc:///tmp/wg/fe0-output"],
    }
    with_coordinator = two | {
        "coordinator_input": "tcp://127.0.0.1:29551",
        "coordinator_output": "tcp://127.0.0.1:29552",
        "frontend_stats_publish_address": "tcp://127.0.0.1:29553",
    }
    lockstep = {
        "data_parallel_master_ip": "10.0.0.1",
        "data_parallel_master_port": 29600,
        "_data_parallel_master_port_list": [29601, 29602, 29603],
        "data_parallel_size": 2,
    }
    vectors = {
        "init_one_client": {"addresses": one, "parallel_config": {}},
        "init_two_clients": {"addresses": two, "parallel_config": {}},
        "init_lockstep": {"addresses": with_coordinator, "parallel_config": lockstep},
    }
    encoded = {name: wire.encode(value) for name, value in vectors.items()}
    for data in encoded.values():
        wire.decode_init(data)
    return encoded


def registrations() -> Vectors:
    full = wire.registration(3, 4096)
    nested = {"event_config": {"endpoints": ["tcp://h:1", {"retry": [1, 2.5, None]}], "on": True}}
    future = {f"future_key_{i}": i for i in range(8)} | {"nested": nested, "blob": b"\x00\xff"}
    values: dict[str, Any] = {
        "registration_2_keys": {"max_model_len": 8192, "num_gpu_blocks": 512},
        "registration_all_keys": full,
        "registration_extra_keys": full
        | future
        | {"kv_events_config": {"publisher": "zmq", "topics": ["a", {"b": []}]}},
    }
    return {name: wire.encode(value) for name, value in values.items()}


def requests() -> Vectors:
    """The arrays end with external_req_id, which is what a frontend of ours sends; but for _shortest and _longest."""
    params = {
        "presence_penalty": -1.5,
        "frequency_penalty": 2.0,
        "repetition_penalty": 1.25,
        "temperature": 0.5,
        "top_p": 0.875,
        "top_k": 40,
        "min_p": 0.0625,
        "seed": 1234,
        "stop_token_ids": [5, 31999],
        "ignore_eos": True,
        "max_tokens": 300,
        "min_tokens": 3,
        "_eos_token_id": 2,
        "_all_stop_token_ids": [5, 31999, 2],
    }
    later = {
        "max_tokens": 300,
        "logprobs": 5,
        "prompt_logprobs": -1,
        "logprob_token_ids": [7, 65536],
        "allowed_token_ids": [0, 1, 128],
        "logit_bias": {5: -100.0, 31999: 0.5},
        "thinking_token_budget": -1,
        "skip_reading_prefix_cache": False,
        "structured_outputs": {"choice": ["yes", "nö"], "_backend": "guidance"},
        "repetition_detection": {"max_pattern_size": 20, "min_pattern_size": 3, "min_count": 2},
        "extra_args": {"kv_transfer_params": {"do_remote_decode": True, "blocks": [1, 2.5, None]}},
    }
    big = {"seed": wire.INT64_MIN, "max_tokens": 2**31, "min_tokens": 2**16}
    vectors = {
        "add_minimal": add("req-1-0000abcd", [1, 2, 3], {"max_tokens": 16}, external_req_id="req-1"),
        "add_all_fields": add(
            "ünïcode-00c0ffee",
            [0, 127, 128, 255, 256, 31999],
            params,
            external_req_id="ünïcode",
            cache_salt="tenant-7",
            data_parallel_rank=3,
            client_index=2,
            priority=-1,
        ),
        "add_later_fields": add(
            "g-00c0ffee",
            [9],
            later,
            external_req_id="g",
            lora_request=["sql", 3, "/loras/sql"],
            trace_headers={"traceparent": "00-ab-cd-01", "tracestate": "vendor=1"},
        ),
        "add_big_ints": add(
            "b-ffffffff",
            [0xFFFF, 0x10000, 0x7FFFFFFF],
            big,
            external_req_id="b",
            client_index=65535,
            current_wave=2**40,
            priority=wire.INT64_MIN,
            data_parallel_rank=65535,
        ),
        "add_big_ints_positive": add(
            "b-ffffffff",
            [1],
            {"seed": wire.INT64_MAX, "max_tokens": 1},
            external_req_id="b",
            priority=wire.INT64_MAX,
        ),
        "add_shortest": add("s-00000001", [7], {})[:9],
        "add_longest": [*add("l-00000001", [7], {}, external_req_id="l"), None, None, False, "session", None],
        "abort": ["req-1-0000abcd", "ünïcode-00c0ffee"],
        "abort_empty": [],
    }
    encoded = {name: wire.encode(value) for name, value in vectors.items()}
    for name in ("add_minimal", "add_all_fields", "add_later_fields", "add_big_ints", "add_big_ints_positive", "add_shortest"):
        wire.decode_add(encoded[name], vocab_size=2**31)
    return encoded


def add(request_id: str, prompt: list[int], params: dict[str, Any], **fields: Any) -> list[Any]:
    return [
        request_id,
        prompt,
        None,
        params,
        None,
        1750000000.25,
        fields.get("lora_request"),
        fields.get("cache_salt"),
        fields.get("data_parallel_rank"),
        None,
        None,
        fields.get("client_index", 1),
        fields.get("current_wave", 0),
        fields.get("priority", 0),
        fields.get("trace_headers"),
        False,
        fields.get("external_req_id"),
    ]


def tensor(
    dtype: str, shape: list[int], code: str, values: list[Any], frames: list[bytes] | None
) -> list[Any]:
    """Inline as Ext 3, or as the index of a frame that is appended to frames."""
    data = struct.pack(f"<{len(values)}{code}", *values)
    if frames is None:
        return [dtype, shape, msgspec.msgpack.Ext(EXT_RAW, data)]
    frames.append(data)
    return [dtype, shape, len(frames)]


def logprobs(frames: list[bytes] | None, dtypes: tuple[str, str]) -> list[Any]:
    """Two positions, the sampled token and two alternatives each."""
    ids, floats = dtypes
    code = "q" if "8" in ids or "64" in ids else "i"
    return [
        tensor(ids, [2, 3], code, [11, 5, 9, 12, 12, 4], frames),
        tensor(floats, [2, 3], "f", [-0.5, -1.25, -2.0, -0.125, -0.125, -8.0], frames),
        tensor(ids, [2], code, [3, 1], frames),
        None,
    ]


def outputs() -> dict[str, Any]:
    Output, Envelope = wire.EngineCoreOutput, wire.EngineCoreOutputs
    prefill = dict.fromkeys(
        (
            "num_computed_tokens",
            "num_local_cached_tokens",
            "num_external_cached_tokens",
            "num_cache_creation_tokens",
        ),
        4,
    )
    prefill = {"num_prompt_tokens": 20, "num_cached_tokens": 16} | prefill
    events = [{"type": 1, "timestamp": 100.5}, {"type": 2, "timestamp": 100.75}]
    reasons = [(0, None), (0, 5), (0, "stop text"), (1, None), (2, None), (3, None), (4, None)]
    stats = wire.SchedulerStats(
        num_running_reqs=7,
        num_waiting_reqs=3,
        num_skipped_waiting_reqs=2,
        step_counter=4096,
        current_wave=12,
        kv_cache_usage=0.375,
        spec_decoding_stats={"num_drafts": 1, "num_accepted_tokens_per_pos": [1, 0]},
        kv_connector_stats={"transfers": [{"bytes": 2**33}]},
    )
    stamp: dict[str, Any] = {"engine_index": 1, "timestamp": 1234.5}
    return {
        "plain": Envelope(
            outputs=[Output("a-00000001", [17, 31999]), Output("b-00000002", [70000])], **stamp
        ),
        "finish_reasons": Envelope(
            outputs=[
                Output(f"f-{i:08x}", [i], finish_reason=reason, stop_reason=stop)
                for i, (reason, stop) in enumerate(reasons)
            ],
            finished_requests=[f"f-{i:08x}" for i in range(len(reasons))],
            **stamp,
        ),
        "prefill_stats": Envelope(
            outputs=[Output("p-00000001", [9], prefill_stats=prefill, events=events, num_nans_in_logits=1)],
            **stamp,
        ),
        "prefill_stats_older": Envelope(
            outputs=[wire.OlderEngineCoreOutput("p-00000001", [9], prefill_stats=prefill, events=events)],
            **stamp,
        ),
        "transfer_params": Envelope(
            outputs=[
                Output(
                    "k-00000001",
                    [9],
                    finish_reason=1,
                    kv_transfer_params={"remote_block_ids": [1, 2], "num_prompt_tokens": "not the stats"},
                    ec_transfer_params={"peer": {"host": "h"}},
                    trace_headers={"traceparent": "00-1-1-00"},
                    prefill_stats=prefill,
                )
            ],
            **stamp,
        ),
        "transfer_params_older": Envelope(
            outputs=[
                wire.OlderEngineCoreOutput(
                    "k-00000001",
                    [9],
                    finish_reason=1,
                    kv_transfer_params={"remote_block_ids": [1, 2]},
                    trace_headers={"tracestate": "vendor=1", "traceparent": "00-1-1-00"},
                    prefill_stats=prefill,
                )
            ],
            **stamp,
        ),
        "utility_result": Envelope(utility_output=wire.UtilityOutput(7, None, [None, True]), **stamp),
        "utility_failure": Envelope(utility_output=wire.UtilityOutput(8, "no such method"), **stamp),
        "utility_notice": Envelope(
            utility_output=wire.UtilityOutput(-1, None, ["str", "reconfigured"]), **stamp
        ),
        "wave_complete": Envelope(wave_complete=5, **stamp),
        "start_wave": Envelope(start_wave=6, **stamp),
        "scheduler_stats": Envelope(scheduler_stats=stats, **stamp),
        "finished_requests": Envelope(finished_requests=["a-00000001", "never-seen"], **stamp),
        "nothing": Envelope(),
    }


def output_vectors() -> Vectors:
    vectors: Vectors = {}
    for name, message in outputs().items():
        vectors[f"outputs_{name}"] = wire.encode(message)
        vectors[f"outputs_{name}_trimmed"] = wire.encode(wire.trimmed(message))
    for name, aux, dtypes in (
        ("inline", False, ("<i4", "<f4")),
        ("inline_torch", False, ("int64", "float32")),
        ("aux", True, ("int32", "float32")),
        ("aux_numpy", True, ("<i8", "<f4")),
    ):
        frames: list[bytes] | None = [] if aux else None
        output = wire.EngineCoreOutput(
            "t-00000001", [11, 12], logprobs(frames, dtypes), logprobs(frames, dtypes)
        )
        message = wire.EngineCoreOutputs(1, [output], timestamp=1234.5)
        vectors[f"outputs_logprobs_{name}"] = wire.encode(message)
        vectors[f"outputs_logprobs_{name}_trimmed"] = wire.encode(wire.trimmed(message))
        for index, frame in enumerate(frames or (), start=1):
            vectors[f"outputs_logprobs_{name}_frame_{index}"] = frame
    return vectors


def publishes() -> Vectors:
    values: dict[str, Any] = {
        "publish_3_numbers": [[[1, 2, 0.5], [0, 300, 0.0]], 4, True],
        "publish_2_numbers": [[[1, 2], [0, 300]], 4, False],
        "publish_no_counts": [None, 2**33, False],
    }
    return {name: wire.encode(value) for name, value in values.items()}


def controls() -> Vectors:
    """The control link is not vLLM's, so no header has these: the C side has its own tests of it."""
    response = wire.encode(wire.registration(3, 4096))
    values: dict[str, Any] = {
        "control_join": ["JOIN", 2, -(2**62), 4, [[0, 2, response], [3, 1, b""], [65535, 0, None]]],
        "control_join_nothing": ["JOIN", 2, 7, 0, []],
        "control_beat": ["BEAT", [[0, 12], [3, 0], [65535, 2**40]]],
        "control_ranks": ["RANKS", 5, [[0, 0, None], [1, 1, None], [2, 2, response], [3, 3, b""]]],
        "control_beat_beyond": ["BEAT", [[65536, 1]]],  # refused
        "control_ranks_beyond": ["RANKS", 5, [[65536, 2, response]]],  # refused
        "control_state_beyond": ["RANKS", 5, [[1, 4, None]]],  # refused
        "control_heard": ["HEARD", 2**33],
        "control_rejoin": ["REJOIN"],
        "control_refused": ["REFUSED", "the configurations differ"],
    }
    return {name: wire.encode(value) for name, value in values.items()}
