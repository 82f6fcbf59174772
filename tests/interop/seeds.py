"""The fuzzers' seeds: what engines and we send, and what is only just refused."""

import struct
from pathlib import Path
from typing import Any

import msgspec

from interop import messages as wire
from interop.vectors import (
    Vectors,
    controls,
    handshake,
    logprobs,
    output_vectors,
    publishes,
    registrations,
    tensor,
)

CORPUS = Path(__file__).parent.parent / "fuzz" / "corpus"


def whole_message(envelope: bytes, frames: list[bytes]) -> bytes:
    """As fuzz_wire_outputs.c takes it: how many auxiliary frames, their lengths, the envelope, the frames."""
    lengths = b"".join(struct.pack("<H", len(frame)) for frame in frames)
    return bytes([len(frames)]) + lengths + envelope + b"".join(frames)


def every_type() -> dict[Any, Any]:
    """A map of all that MessagePack has, for the JSON that is made of it."""
    floats = [0.5, -0.0, 1e300, 5e-324, float("inf"), float("-inf"), float("nan")]
    return {
        "floats": floats,
        "ints": [0, -1, 127, -128, 2**31, wire.INT64_MIN, 2**64 - 1],
        "texts": ["", 'a"\\\n\x01\x00', "ünïcode 😀"],
        "bytes": [b"", b"\x00", b"\x00\xff", b"\x00\xff\x80"],
        "words": [None, True, False, msgspec.msgpack.Ext(7, b"ext")],
        "nested": [[], {}, [{"a": [{"b": [[1]]}]}]],
        7: 1,
        -1.5: 2,
        None: 3,
        True: 4,
        b"key": 5,
    }


def near_misses() -> Vectors:
    """Outputs that are refused by one number: a decoder that let them pass would read what is not there."""
    full = logprobs(None, ("<i4", "<f4"))
    short_ranks = [*full[:2], tensor("<i4", [1], "i", [3], None), None]
    narrow_values = [full[0], tensor("<f4", [2, 2], "f", [-1.0] * 4, None), full[2], None]
    empty = [tensor(dtype, [4, 2**30], "i", [], None) for dtype in ("<i4", "<f4")]  # 0 elements in 32 bits
    wrapped = [*empty, tensor("<i4", [4], "i", [3, 1, 1, 1], None), None]
    tensors = {"short_ranks": short_ranks, "narrow_values": narrow_values, "wrapped_shape": wrapped}
    messages = {
        name: wire.EngineCoreOutputs(1, [wire.EngineCoreOutput("t-00000001", [11, 12], value)])
        for name, value in tensors.items()
    }
    return {name: whole_message(wire.encode(message), []) for name, message in messages.items()}


def seeds() -> dict[Path, bytes]:
    vectors = output_vectors()
    params = wire.EngineCoreOutput("k-00000001", [9], kv_transfer_params=every_type())
    outputs: Vectors = near_misses() | {
        "every_type": whole_message(wire.encode(wire.EngineCoreOutputs(1, [params])), [])
    }
    for name, envelope in vectors.items():
        if "_frame_" in name:
            continue
        untrimmed = name.removesuffix("_trimmed")
        frames = [data for other, data in vectors.items() if other.startswith(f"{untrimmed}_frame_")]
        outputs[name] = whole_message(envelope, frames)
    targets = {
        "fuzz_wire_outputs": outputs,
        "fuzz_wire_handshake": handshake()
        | registrations()
        | {
            "registration_empty": b"",
            "registration_long_version": wire.encode({"vllm_version": "0.15.0+" + "ü" * 60}),
            "registration_negative": wire.encode({"max_model_len": -2, "num_gpu_blocks": -(2**40)}),
        },
        "fuzz_wire_publish": publishes()
        | {"publish_negative": wire.encode([[[1, -2], [-3, 4]], -1, True])},
        "fuzz_wire_control": controls(),
    }
    return {
        CORPUS / target / name: data for target, files in targets.items() for name, data in files.items()
    }
