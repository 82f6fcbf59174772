"""Random request bodies for both routes, from a seed: most of them right, over every field and at its edges, in
every form of JSON text; bad_bodies.py makes the others. reference.py says what a right one must come to."""

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from interop.bad_bodies import IDS_MAX, INT64, VOCAB_SIZE, Spoiler

ADAPTER = "sql"

GENERATE, COMPLETIONS = "/inference/v1/generate", "/v1/completions"
PROMPT_OF = {GENERATE: "token_ids", COMPLETIONS: "prompt"}


class Wanted(Enum):
    SERVED = "served"
    REFUSED = "refused"
    EITHER = "either"  # a random change may have done no harm


@dataclass
class Body:
    path: str
    text: bytes
    wanted: Wanted
    fields: dict[str, Any] = field(default_factory=dict)  # what the text says, where it must be served
    headers: list[tuple[str, str]] = field(default_factory=list)


class Generator:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def body(self) -> Body:
        path = self.random.choice([GENERATE, COMPLETIONS])
        fields = self._generate() if path == GENERATE else self._completions()
        kind = self.random.random()
        if kind < 0.6:
            return Body(path, self._written(path, fields), Wanted.SERVED, fields, self._headers())
        spoiler = Spoiler(self.random, PROMPT_OF[path], fields)
        if kind < 0.8:
            return Body(path, spoiler.surely(), Wanted.REFUSED)
        return Body(path, spoiler.perhaps(), Wanted.EITHER)

    # --- values ---

    def _id(self) -> int:
        return self.random.choice([0, 1, 127, 128, 255, 256, 31999, self.random.randrange(VOCAB_SIZE)])

    def _ids(self, most: int = 5) -> list[int]:
        return [self._id() for _ in range(self.random.randint(1, most))]

    def _text(self) -> str:
        texts = ["a", "tenänt", "日本", "\U0001f600", "x" * 200, '"\\\n', "\x7f", '"token_ids":[1]']
        return self.random.choice(texts)

    def _value(self, depth: int = 0) -> Any:
        """Free-form JSON."""
        if depth > 3 or self.random.random() < 0.5:
            choices = [None, True, 0, -1, 2**31, INT64 - 1, -INT64, 0.5, -1e-300, 1e300, 0.1, "", self._text()]
            return self.random.choice(choices)
        if self.random.random() < 0.5:
            return [self._value(depth + 1) for _ in range(self.random.randint(0, 3))]
        return {self._text(): self._value(depth + 1) for _ in range(self.random.randint(0, 3))}

    def _object(self) -> dict[str, Any]:
        """Now and then with a member that has the name of the prompt, and is none."""
        decoys: list[dict[str, Any]] = [{}, {}, {"token_ids": [1, 2]}, {"prompt": [[3]]}, {"token_ids": "x"}]
        return self.random.choice(decoys) | {
            self._text(): self._value() for _ in range(self.random.randint(0, 3))
        }

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
        options = {
            "disable_fallback": True,
            "disable_any_whitespace": False,
            "disable_additional_properties": True,
            "whitespace_pattern": " ?",
            "regex" if kind != "regex" else "grammar": None,  # as good as absent
        }
        chosen = {key: value for key, value in options.items() if self.random.random() < 0.3}
        return {kind: kinds[kind]} | chosen

    # --- fields ---

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
            "stop_token_ids": lambda: pick([[], *[self._ids()] * 20, [31999] * IDS_MAX]),  # the most
            "ignore_eos": lambda: pick([True, False]),
            "logprobs": lambda: pick([0, 1, 5, 20]),
            "logprob_token_ids": lambda: pick([*[self._ids()] * 20, [5] * 128]),  # the most
            "allowed_token_ids": self._ids,
            "logit_bias": lambda: {str(self._id()): pick([-100, 100, 0, 0.5]) for _ in range(pick([0, 1, 3]))},
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
            "output_kind": lambda: pick([0, 1, 2]),
        }
        chosen = {name: make() for name, make in makers.items() if self.random.random() < 0.15}
        fields = {name: None if self.random.random() < 0.03 else value for name, value in chosen.items()}
        given_ids = fields.get("logprob_token_ids")
        if fields.get("logprobs") is not None and given_ids:
            fields["logprobs"] = len(given_ids) if len(given_ids) <= 20 else None
        if len(fields.get("stop_token_ids") or []) > 100:  # so many cannot be masked until min_tokens
            fields.pop("min_tokens", None)
        return fields

    def _common(self) -> dict[str, Any]:
        makers: dict[str, Callable[[], Any]] = {
            "request_id": lambda: self.random.choice(["x", "!" * 256, '"\\~/<>', "client.id-7"]),
            "model": lambda: self.random.choice(["demo", ADAPTER]),
            "priority": lambda: self.random.choice([0, 1, -INT64, INT64 - 1]),
            "cache_salt": self._text,
            "data_parallel_rank": lambda: 0,
            "deadline_ms": lambda: self.random.choice([60000, 86400000]),
            "kv_transfer_params": self._object,
            "ec_transfer_params": self._object,
            "stream": lambda: self.random.choice([True, True, False]),
        }
        fields = {name: make() for name, make in makers.items() if self.random.random() < 0.2}
        if fields.get("stream") and self.random.random() < 0.5:
            names = ("include_usage", "continuous_usage_stats")
            fields["stream_options"] = {name: self.random.choice([True, False, None]) for name in names}
        return fields

    def _with_prompt_logprobs(self, fields: dict[str, Any], sampling: dict[str, Any]) -> None:
        if self.random.random() < 0.1 and not fields.get("stream"):
            sampling["prompt_logprobs"] = self.random.choice([0, 3, 20])

    def _generate(self) -> dict[str, Any]:
        sampling = self._sampling()
        fields = self._common() | {"token_ids": self._ids(40), "sampling_params": sampling}
        self._with_prompt_logprobs(fields, sampling)
        if not sampling and self.random.random() < 0.5:
            fields["sampling_params"] = None
        return self._shuffled(fields)

    def _completions(self) -> dict[str, Any]:
        prompts = [self._ids(10) for _ in range(self.random.randint(1, 3))]
        prompt: Any = prompts if self.random.random() < 0.3 else prompts[0]
        extra = {"echo": False, "suffix": None, "user": "me", "return_token_ids": True}
        chosen = {name: value for name, value in extra.items() if self.random.random() < 0.1}
        fields = self._common() | self._sampling() | chosen | {"prompt": prompt}
        self._with_prompt_logprobs(fields, fields)
        return self._shuffled(fields)

    def _shuffled(self, fields: dict[str, Any]) -> dict[str, Any]:
        names = list(fields)
        self.random.shuffle(names)
        return {name: fields[name] for name in names}

    # --- around them ---

    def _written(self, path: str, fields: dict[str, Any]) -> bytes:
        """The same object in one of the forms that JSON text may have."""
        form: dict[str, Any] = self.random.choice(
            [{}, {"separators": (",", ":")}, {"indent": "\t"}, {"separators": (" ,\r\n", " : ")}]
        )
        text = json.dumps(fields, ensure_ascii=self.random.random() < 0.5, **form).encode()
        name = PROMPT_OF[path]
        if self.random.random() < 0.1:  # an escape in the name of the prompt: it is the same name
            text = text.replace(f'"{name}"'.encode(), f'"{name[:-1]}\\u{ord(name[-1]):04x}"'.encode())
        blank = self.random.choice([b"", b"", b" ", b"\r\n", b"\t \n"])
        return blank + text + blank

    def _headers(self) -> list[tuple[str, str]]:
        trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        headers = [("traceparent", trace), ("tracestate", "vendor=a:b,other=1")]
        return self.random.choice([[], [], [], headers[:1], headers, headers[1:]])
