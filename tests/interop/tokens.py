"""The tokens that a test engine answers with: a pure function of (prompt, position).

h is FNV-1a 64 over the prompt ids, each as 4 little-endian bytes; token i is splitmix64(h + i) mod the
vocabulary size. The C fake engine has the same function (tests/fake_engine/tokens.h), so a test can tell
every missing, repeated or foreign token whichever engine served it.
"""

from collections.abc import Collection, Sequence

MASK = (1 << 64) - 1
FNV_OFFSET = 14695981039346656037
FNV_PRIME = 1099511628211


def fnv1a(prompt: Sequence[int]) -> int:
    h = FNV_OFFSET
    for byte in b"".join(token.to_bytes(4, "little") for token in prompt):
        h = ((h ^ byte) * FNV_PRIME) & MASK
    return h


def splitmix64(x: int) -> int:
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


class TokenSource:
    """The endless answer to one prompt."""

    def __init__(self, prompt: Sequence[int], vocab_size: int) -> None:
        self._hash = fnv1a(prompt)
        self._vocab_size = vocab_size

    def __getitem__(self, position: int) -> int:
        return splitmix64((self._hash + position) & MASK) % self._vocab_size


def expected(
    prompt: Sequence[int],
    max_tokens: int,
    vocab_size: int,
    stop_ids: Collection[int] = (),
    min_tokens: int = 0,
) -> tuple[list[int], str]:
    """What a request is to get back: its tokens and its finish reason. A stop id is part of the output."""
    source = TokenSource(prompt, vocab_size)
    tokens: list[int] = []
    while len(tokens) < max_tokens:
        tokens.append(source[len(tokens)])
        if tokens[-1] in stop_ids and len(tokens) > min_tokens:
            return tokens, "stop"
    return tokens, "length"
