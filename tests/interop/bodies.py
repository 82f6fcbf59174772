"""Random request bodies for both routes, from a seed: mostly right, over every field and at its edges, else wrong in a
way that a careless or hostile client could make them."""

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

VOCAB_SIZE = 32000
MODEL_LEN = 4096
INT64 = 2**63
ADAPTER = "sql"

GENERATE, COMPLETIONS = "/inference/v1/generate", "/v1/completions"


@dataclass
class Body:
    path: str
    text: bytes
    is_valid: bool  # then it must be served; else it may be, where the change did no harm


class Generator:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def body(self) -> Body:
        path = self.random.choice([GENERATE, COMPLETIONS])
        fields = self._generate() if path == GENERATE else self._completions()
        if self.random.random() < 0.6:
            return Body(path, json.dumps(fields).encode(), True)
        spoil = self.random.choice([self._spoil_value, self._spoil_value, self._spoil_value, self._spoil_text])
        return Body(path, spoil(fields), False)

    # --- right ---

    def _id(self) -> int:
        return self.random.choice([0, 1, 127, 128, 255, 256, 31999, self.random.randrange(VOCAB_SIZE)])

    def _ids(self, most: int = 5) -> list[int]:
        return [self._id() for _ in range(self.random.randint(1, most))]

    def _text(self) -> str:
        return self.random.choice(["a", "tenänt", "日本", "\U0001f600", "x" * 200, '"\\\n', "\x7f"])

    def _value(self, depth: int = 0) -> Any:
        """Free-form JSON."""
        if depth > 3 or self.random.random() < 0.5:
            choices = [None, True, 0, -1, 2**31, INT64 - 1, -INT64, 0.5, -1e-300, 1e300, "", self._text()]
            return self.random.choice(choices)
        if self.random.random() < 0.5:
            return [self._value(depth + 1) for _ in range(self.random.randint(0, 3))]
        return {self._text(): self._value(depth + 1) for _ in range(self.random.randint(0, 3))}

    def _object(self) -> dict[str, Any]:
        return {self._text(): self._value() for _ in range(self.random.randint(0, 3))}

    def _structure(self) -> dict[str, Any]:
        kinds: dict[str, Any] = {
            "json": self.random.choice(['{"type":"object"}', {"type": "object", "x": self._value()}]),
            "regex": "[ab]+",
            "choice": ["yes", self._text()],
            "grammar": "root ::= x",
            "json_object": True,
            "structural_tag": self.random.choice(["{}", {"type": "tag"}]),
        }
        kind = self.random.choice(list(kinds))
        options = {"disable_any_whitespace": True, "whitespace_pattern": " ?", "regex_": None}
        options.pop("regex_")
        chosen = {key: value for key, value in options.items() if self.random.random() < 0.3}
        return {kind: kinds[kind]} | chosen

    def _sampling(self) -> dict[str, Any]:
        uniform, pick = self.random.uniform, self.random.choice
        makers: dict[str, Callable[[], Any]] = {
            "n": lambda: pick([1, 1, 2, 3]),
            "temperature": lambda: pick([1, 0.01, 2, 1e-3, uniform(0.1, 2)]),
            "top_p": lambda: pick([1, 0.5, 1e-3, uniform(0.001, 1)]),
            "top_k": lambda: pick([-1, 0, 1, 50, 2**31 - 1]),
            "min_p": lambda: pick([0, 1, 0.5, 1e-320, -0.0]),
            "presence_penalty": lambda: pick([-2, 2, 0, 0.5, uniform(-2, 2)]),
            "frequency_penalty": lambda: pick([-2, 2, 0, -0.0, uniform(-2, 2)]),
            "repetition_penalty": lambda: pick([1, 0.1, 1.2, 1e6]),
            "seed": lambda: pick([0, 1, -INT64, INT64 - 10]),
            "max_tokens": lambda: pick([2, 3, 16, 300]),
            "min_tokens": lambda: pick([0, 1, 2]),
            "stop_token_ids": lambda: pick([[], self._ids()]),
            "ignore_eos": lambda: pick([True, False]),
            "logprobs": lambda: pick([0, 1, 5, 20]),
            "logprob_token_ids": self._ids,
            "allowed_token_ids": self._ids,
            "logit_bias": lambda: {str(self._id()): pick([-100, 100, 0, 0.5]) for _ in range(3)},
            "structured_outputs": self._structure,
            "thinking_token_budget": lambda: pick([-1, 0, 1, INT64 - 1]),
            "skip_reading_prefix_cache": lambda: pick([True, False]),
            "repetition_detection": lambda: pick(
                [{"max_pattern_size": 8, "min_pattern_size": 2, "min_count": 2}, {}, {"max_pattern_size": 0}]
            ),
            "extra_args": self._object,
            "stop": lambda: pick([[], None, ""]),
            "bad_words": lambda: [],
            "detokenize": lambda: pick([True, False]),
            "skip_special_tokens": lambda: pick([True, False]),
            "include_stop_str_in_output": lambda: False,
        }
        chosen = {name: make() for name, make in makers.items() if self.random.random() < 0.15}
        fields = {name: None if self.random.random() < 0.03 else value for name, value in chosen.items()}
        if fields.get("logprobs") is not None and fields.get("logprob_token_ids") is not None:
            fields["logprobs"] = len(fields["logprob_token_ids"])
        return fields

    def _common(self) -> dict[str, Any]:
        makers: dict[str, Callable[[], Any]] = {
            "model": lambda: self.random.choice(["demo", ADAPTER]),
            "priority": lambda: self.random.choice([0, 1, -INT64, INT64 - 1]),
            "cache_salt": self._text,
            "data_parallel_rank": lambda: 0,
            "deadline_ms": lambda: 60000,
            "kv_transfer_params": self._object,
            "ec_transfer_params": self._object,
            "stream": lambda: self.random.choice([True, False]),
        }
        fields = {name: make() for name, make in makers.items() if self.random.random() < 0.2}
        if fields.get("stream") and self.random.random() < 0.5:
            names = ("include_usage", "continuous_usage_stats")
            fields["stream_options"] = {name: self.random.choice([True, False, None]) for name in names}
        return fields

    def _generate(self) -> dict[str, Any]:
        sampling = self._sampling()
        fields = self._common() | {"token_ids": self._ids(40), "sampling_params": sampling}
        if self.random.random() < 0.1 and not fields.get("stream"):
            sampling["prompt_logprobs"] = self.random.choice([0, 3, 20])
        return self._shuffled(fields)

    def _completions(self) -> dict[str, Any]:
        prompts = [self._ids(10) for _ in range(self.random.randint(1, 3))]
        prompt: Any = prompts if self.random.random() < 0.3 else prompts[0]
        extra = {"echo": False, "suffix": None, "user": "me", "return_token_ids": True}
        chosen = {name: value for name, value in extra.items() if self.random.random() < 0.1}
        return self._shuffled(self._common() | self._sampling() | chosen | {"prompt": prompt})

    def _shuffled(self, fields: dict[str, Any]) -> dict[str, Any]:
        names = list(fields)
        self.random.shuffle(names)
        return {name: fields[name] for name in names}

    # --- wrong ---

    def _bad_value(self) -> Any:
        deep: Any = 0
        for _ in range(self.random.choice([3, 31, 40, 500])):
            deep = [deep]
        return self.random.choice(
            [
                *(None, True, False, "", "x", "1", [], {}, [[]], [None], {"a": 1}, [1, "a"], deep),
                *(-1, 0, 1.5, -0.5, 3, 1e9, -INT64, INT64 - 1, INT64, 10**30, 1e308, float("nan")),
                *(float("inf"), -float("inf"), VOCAB_SIZE, 2**31, 2**32, [VOCAB_SIZE], [-1], [1.0], [2**32]),
                *([0] * 20000, {"5": 1000}, {"05": 1}, {"x": 1}, {str(VOCAB_SIZE): 1}, {"json": "{}", "regex": "a"}),
            ]
        )

    def _spoil_value(self, fields: dict[str, Any]) -> bytes:
        """One value of another kind, or one member more or less, at the top or one below."""
        objects = [fields, *(value for value in fields.values() if isinstance(value, dict))]
        target = self.random.choice(objects)
        action = self.random.randrange(4)
        if action == 0 and target:
            del target[self.random.choice(list(target))]
        elif action == 1:
            target[self.random.choice(["later", "token_ids", "prompt", "n", "echo", "", "logprobs", "stop"])] = (
                self._bad_value()
            )
        elif target:
            target[self.random.choice(list(target))] = self._bad_value()
        return json.dumps(fields).encode()

    def _spoil_text(self, fields: dict[str, Any]) -> bytes:
        text = bytearray(json.dumps(fields, ensure_ascii=self.random.random() < 0.5).encode())
        for _ in range(self.random.randint(1, 3)):
            place = self.random.randrange(len(text) + 1)
            action = self.random.randrange(4)
            if action == 0:
                del text[place:]
            elif action == 1:
                del text[place : place + self.random.randint(1, 4)]
            elif action == 2:
                bad = [b"\x00", b"\xff", b"\xc0\xaf", b'"', b"[", b"]", b"{", b"}", b",", b":", b"\\", b"\\ud800", b"1e999"]
                text[place:place] = self.random.choice(bad)
            elif text:
                text[min(place, len(text) - 1)] = self.random.randrange(256)
        return bytes(text)
