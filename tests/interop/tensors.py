"""Logprobs as engines send them (protocol.md 6), and what they are: a pure function of the token and its place.

A row has the token itself, then k more. At every third place the first of those is the token again, as where it was
the likeliest; at every seventh the last one is impossible. Values are whole 64ths, so that 32 bits and nine digits
hold them exactly.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy

from interop.tokens import splitmix64

EXT_RAW = 3  # bytes inline
INLINE_BELOW = 256  # bytes; vLLM's limit
NAMES = {  # by the library that the engine had them from
    "numpy": {"i4": "<i4", "i8": "<i8", "f4": "<f4"},
    "torch": {"i4": "int32", "i8": "int64", "f4": "float32"},
}


@dataclass
class Row:
    ids: list[int]
    values: list[float]
    rank: int

    def shown(self, top: int) -> list[tuple[int, float]]:
        """The entries that a client sees: each id once, the token first, at most `top`."""
        seen: dict[int, float] = {}
        for token, value in zip(self.ids, self.values, strict=True):
            seen.setdefault(token, max(value, -9999.0))
        return list(seen.items())[:top]


def row(token: int, place: int, k: int, vocab_size: int) -> Row:
    noise = splitmix64(token * 65537 + place)
    first = -(noise % 2048) / 64
    ids, values = [token], [first]
    for j in range(1, k + 1):
        repeats = j == 1 and place % 3 == 0
        ids.append(token if repeats else (token + j * 7 + place) % vocab_size)
        values.append(first if repeats else -(splitmix64(noise + j) % 4096) / 64)
    if k > 0 and place % 7 == 6 and ids[-1] != token:
        values[-1] = float("-inf")
    return Row(ids, values, 1 if k > 0 and place % 3 == 0 else 1 + noise % 1000)


class Packer:
    """The tensors of one message. Data that is not inline goes to `frames`, behind the envelope."""

    def __init__(self, names: str, inline_below: int) -> None:
        self.names = NAMES[names]
        self.inline_below = inline_below
        self.frames: list[bytes] = []

    def tensor(self, values: Sequence[object], kind: str) -> list[Any]:
        array = numpy.array(values, dtype=f"<{kind}")
        data = array.tobytes()
        shape = list(array.shape)
        if len(data) < self.inline_below:
            return [self.names[kind], shape, msgspec.msgpack.Ext(EXT_RAW, data)]
        self.frames.append(data)
        return [self.names[kind], shape, len(self.frames)]

    def logprobs(self, rows: Sequence[Row], wide: bool) -> list[Any]:
        """With ids and ranks of 32 bits or, as torch has them, of 64."""
        kind = "i8" if wide else "i4"
        return [
            self.tensor([row.ids for row in rows], kind),
            self.tensor([row.values for row in rows], "f4"),
            self.tensor([row.rank for row in rows], kind),
            None,
        ]
