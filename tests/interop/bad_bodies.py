"""What a careless or hostile client makes of a right body: texts that can mean nothing, values that no engine must
see, and random damage that may turn out to be none."""

import json
import random
from typing import Any

VOCAB_SIZE = 32000
INT64 = 2**63
MODEL_LEN = 4096
IDS_MAX = 1024  # of a list; a default of the configuration, like the other limits here

# field -> values, each of which is reason enough to refuse a request
SAMPLING: dict[str, list[Any]] = {
    "n": [0, -1, 17, 1.0, "2", True],
    "temperature": [-0.1, 2.1, "1", True, [], 1e39],
    "top_p": [0, -0.5, 1.01, "1"],
    "top_k": [-2, 1.5, "4", 2**31, INT64],
    "min_p": [-0.1, 1.1, "0"],
    "presence_penalty": [-2.1, 2.1, "0", True],
    "frequency_penalty": [-2.1, 2.1, {}],
    "repetition_penalty": [0, -1, "1", []],
    "seed": [1.5, "1", INT64, -INT64 - 1, True],
    "max_tokens": [0, -1, 1.5, "5", True, MODEL_LEN, INT64 - 1, INT64],
    "min_tokens": [-1, 1.5, "1", MODEL_LEN + 1, INT64 - 1],
    "stop_token_ids": [5, "5", [1.5], ["5"], [-1], [VOCAB_SIZE], [True], [2**32], [INT64], [None], [0] * (IDS_MAX + 1)],
    "allowed_token_ids": [[], 5, [VOCAB_SIZE], [1.0], [[1]], {"0": 1}],
    "logprob_token_ids": [[], 5, [-1], [2**31], ["1"], [5] * 129],
    "logit_bias": [
        *([], "5", {"x": 1}, {"05": 1}, {"-1": 1}, {"+5": 1}, {" 5": 1}, {"": 1}, {"5.0": 1}, {"4294967301": 1}),
        *({str(VOCAB_SIZE): 1}, {"5": 100.1}, {"5": "1"}, {"5": None}, {"5": True}, {"9" * 40: 1}),
    ],
    "structured_outputs": [
        *({}, "json", [], {"json": "{}", "regex": "a"}, {"json": 5}, {"json": ""}, {"regex": ""}, {"regex": None}),
        *({"choice": []}, {"choice": [1]}, {"choice": "a"}, {"choice": [""]}, {"json_object": False}),
        *({"json": " "}, {"grammar": "\t\n"}, {"grammar": ""}, {"structural_tag": ""}),
        *({"grammar": {}}, {"structural_tag": []}, {"regex": "a", "_backend": "guidance"}, {"disable_fallback": True}),
        *({"regex": "a", "disable_fallback": 1}, {"regex": "a", "whitespace_pattern": ""}, {"later": 1}),
    ],
    "repetition_detection": [
        *([], "x", {"later": 1}, {"max_pattern_size": -1}, {"max_pattern_size": 1.5}, {"min_count": 2**31}),
        {"max_pattern_size": 1, "min_pattern_size": 2, "min_count": 2},
        {"max_pattern_size": 2, "min_count": 1},
    ],
    "thinking_token_budget": [-2, 1.5, "1", INT64],
    "skip_reading_prefix_cache": [0, 1, "x"],
    "ignore_eos": [1, "yes", []],
    "logprobs": [-1, 21, 1.5, True, "1"],
    "prompt_logprobs": [-1, 21, 1.5, False],
    "extra_args": [[], "x", 5, True],
    "stop": ["end", ["end"], 1, {}],
    "bad_words": [["x"], "x"],
    "detokenize": [1, "x"],
    "output_kind": [3, -1, "1", True],
}
COMMON: dict[str, list[Any]] = {
    "request_id": ["", "a b", "ü", "\x7f", "x" * 257, 7, []],
    "model": ["", "other", 7, ["demo"], "d" * 5000],
    "stream": [1, "true", []],
    "stream_options": [5, [], True, {"later": True}, {"include_usage": 1}],
    "priority": ["0", 1.5, True, INT64, -INT64 - 1],
    "cache_salt": ["", 7, True, []],
    "data_parallel_rank": [1, -1, 65536, 2**40, "0", 0.0, True],
    "deadline_ms": [0, -1, 1.5, 86400001, "1"],
    "kv_transfer_params": [[], "x", 5, True],
    "ec_transfer_params": [[], "x", 5],
    "later": [None, 1, {}],  # a field that there is not
    "Model": ["demo"],
}
TOGETHER: list[dict[str, Any]] = [  # sampling parameters of which each alone would be right
    *({"n": 2, "temperature": 0}, {"n": 2, "temperature": 1e-6}, {"n": 3, "seed": INT64 - 2}),
    *({"min_tokens": 5, "max_tokens": 4}, {"min_tokens": 1, "stop_token_ids": [1] * 128}),
    *({"logprobs": 2, "logprob_token_ids": [1]}, {"logprobs": 0, "logprob_token_ids": [1, 2]}),
]
PROMPTS: list[Any] = [
    *(None, [], [[]], {}, "", "text", 7, True, [1, "2"], [1, 2.5], [1, 2.0], [True], [None], [1, [2]], [[1], 2]),
    *([-1], [VOCAB_SIZE], [2**31], [2**32], [INT64], [10**30], [1] * MODEL_LEN, {"0": 1}, [[1], []], ["a"]),
]
NUMBERS = ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "01", "+1", ".5", "1.", "0x10", "1_0", "1e", "--1", "1 1"]
TEXTS = [
    *(b'"\xff"', b'"\xc0\xaf"', b'"\xed\xa0\x80"', b'"\xf4\x90\x80\x80"', b'"\xe6\x97"', b'"\\ud800"', b'"\\udc00"'),
    *(b'"\\u0000"', b'"\x00"', b'"\x01"', b'"\n"', b'"\\x"', b'"\\u12"', b'"', b"'a'", b"nul", b"True"),
]
MARK = "@@"


class Spoiler:
    """Spoils one right body, whose prompt is the member of that name."""

    def __init__(self, source: random.Random, prompt: str, fields: dict[str, Any]) -> None:
        self.random = source
        self.prompt = prompt
        self.fields = fields

    def surely(self) -> bytes:
        """A text for which there is no answer but a refusal."""
        ways = [self._value, self._value, self._value, self._prompt, self._twice, self._cut, self._longer]
        ways += [self._number, self._text, self._deep, self._together]
        return self.random.choice(ways)()

    def perhaps(self) -> bytes:
        """Random damage."""
        return self._bend() if self.random.random() < 0.75 else self._garble()

    # --- surely ---

    def _place(self) -> dict[str, Any]:
        """Where the sampling parameters are; made, if they are not there."""
        if self.prompt == "prompt":
            return self.fields
        if not isinstance(self.fields.get("sampling_params"), dict):
            self.fields["sampling_params"] = {}
        place: dict[str, Any] = self.fields["sampling_params"]
        return place

    def _dumped(self) -> bytes:
        return json.dumps(self.fields, ensure_ascii=self.random.random() < 0.5).encode()

    def _value(self) -> bytes:
        table, place = self.random.choice([(SAMPLING, self._place()), (SAMPLING, self._place()), (COMMON, self.fields)])
        name = self.random.choice(list(table))
        place[name] = self.random.choice(table[name])
        return self._dumped()

    def _together(self) -> bytes:
        self._place().update(self.random.choice(TOGETHER))
        return self._dumped()

    def _prompt(self) -> bytes:
        value = self.random.choice(PROMPTS)
        if self.random.random() < 0.1:
            del self.fields[self.prompt]
        else:
            self.fields[self.prompt] = value
        return self._dumped()

    def _twice(self) -> bytes:
        """One member once more, with the same value: which of them was meant, nobody knows."""
        inner = self._place()
        target = inner if inner and self.random.random() < 0.5 else self.fields
        name = self.random.choice([*target, self.prompt] if target is self.fields else list(target))
        key = json.dumps(name)
        if self.random.random() < 0.3:
            key = f'{key[:-2]}\\u{ord(name[-1]):04x}"'
        again = f"{key}: {json.dumps(target[name])}}}"
        if target is self.fields:
            return (json.dumps(self.fields)[:-1] + ", " + again).encode()
        self.fields["sampling_params"] = MARK
        whole = json.dumps(target)[:-1] + ", " + again
        return json.dumps(self.fields).replace(f'"{MARK}"', whole).encode()

    def _cut(self) -> bytes:
        text = self._dumped()
        return text[: self.random.randrange(len(text))]

    def _longer(self) -> bytes:
        behind = self.random.choice([b"x", b"{}", b",", b"}", b"]", b"\x00", b" 1", b"\xff", b'"'])
        return self._dumped() + behind

    def _with(self, place: dict[str, Any], name: str, text: bytes) -> bytes:
        """That text, whatever it is, as the value of the member."""
        place[name] = MARK
        return self._dumped().replace(f'"{MARK}"'.encode(), text)

    def _number(self) -> bytes:
        name = self.random.choice(["temperature", "top_p", "seed", "max_tokens"])
        return self._with(self._place(), name, self.random.choice(NUMBERS).encode())

    def _text(self) -> bytes:
        return self._with(self.fields, "cache_salt", self.random.choice(TEXTS))

    def _deep(self) -> bytes:
        """Deeper than the limit, or more values than the limit."""
        depth = self.random.choice([32, 33, 100, 5000, 50000])
        opening, closing = self.random.choice([(b"[", b"]"), (b'{"a":', b"}")])
        deep = b'{"a":' + opening * depth + b"1" + closing * depth + b"}"
        many = b'{"a":[' + b"0," * 100_001 + b"0]}"
        text = many if self.random.random() < 0.05 else deep
        name = self.random.choice(["kv_transfer_params", "ec_transfer_params", "later", self.prompt])
        return self._with(self.fields, name, text)

    # --- perhaps ---

    def _any(self) -> Any:
        deep: Any = 0
        for _ in range(self.random.choice([3, 25, 31, 40])):
            deep = [deep]
        return self.random.choice(
            [
                *(None, True, False, "", "x", "1", [], {}, [[]], [None], {"a": 1}, [1, "a"], deep),
                *(-1, 0, 1.5, -0.5, 3, 1e9, -INT64, INT64 - 1, INT64, 10**30, 1e308, float("nan")),
                *(float("inf"), VOCAB_SIZE, 2**31, 2**32, [VOCAB_SIZE], [1.0], [2**32], [0] * IDS_MAX),
                *({"5": 1000}, {"05": 1}, {"x": 1}, {"json": "{}", "regex": "a"}),
            ]
        )

    def _bend(self) -> bytes:
        """One value of another kind, or one member more or less, at the top or one below."""
        objects = [self.fields, *(value for value in self.fields.values() if isinstance(value, dict))]
        target = self.random.choice(objects)
        action = self.random.randrange(4)
        if action == 0 and target:
            del target[self.random.choice(list(target))]
        elif action == 1:
            names = ["later", "token_ids", "prompt", "n", "echo", "", "logprobs", "stop"]
            target[self.random.choice(names)] = self._any()
        elif target:
            target[self.random.choice(list(target))] = self._any()
        return self._dumped()

    def _garble(self) -> bytes:
        text = bytearray(self._dumped())
        for _ in range(self.random.randint(1, 3)):
            place = self.random.randrange(len(text) + 1)
            action = self.random.randrange(4)
            if action == 0:
                del text[place:]
            elif action == 1:
                del text[place : place + self.random.randint(1, 4)]
            elif action == 2:
                bad = [b"\x00", b"\xff", b'"', b"[", b"]", b"{", b"}", b",", b":", b"\\", b"\\ud800", b"1e999"]
                text[place:place] = self.random.choice(bad)
            elif text:
                text[min(place, len(text) - 1)] = self.random.randrange(256)
        return bytes(text)
