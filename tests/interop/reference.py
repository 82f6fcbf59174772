"""What a right body must come to, worked out from its fields once more, with none of the C side's code: the ADDs that
the engine gets, and the answer that the client gets."""

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec

from interop import messages as wire
from interop.bad_bodies import MODEL_LEN, VOCAB_SIZE
from interop.bodies import ADAPTER, COMPLETIONS, PROMPT_OF, Body
from interop.tokens import expected

EOS_IDS = [2, 7]
BACKEND = "guidance"
LORA = wire.LoraRequest(ADAPTER, 3, "/loras/sql")
CACHED_TOKENS = 2  # what the engine says of each prompt, as far as that goes
TEXT_FIELDS = (  # they have no place on the wire
    *("n", "stop", "bad_words", "detokenize", "skip_special_tokens", "include_stop_str_in_output", "output_kind"),
    *("echo", "suffix", "user", "return_token_ids"),
)
COMMON_FIELDS = (
    *("request_id", "model", "priority", "cache_salt", "data_parallel_rank", "deadline_ms", "stream"),
    *("stream_options", "kv_transfer_params", "ec_transfer_params", "token_ids", "prompt", "sampling_params"),
)


@dataclass
class Choice:
    tokens: list[int]
    reason: str


def canonical(value: Any) -> str:
    """Text that differs where the values or their types do, whatever the order of the keys."""
    return json.dumps(msgspec.to_builtins(value, str_keys=True), sort_keys=True)


class Reference:
    def __init__(self, body: Body) -> None:
        self.body = body
        self.is_completion = body.path == COMPLETIONS
        self.fields = {name: value for name, value in body.fields.items() if value is not None}
        given = self.fields if self.is_completion else self.fields.get("sampling_params", {})
        self.given = {name: value for name, value in given.items() if value is not None}
        prompt = self.fields[PROMPT_OF[body.path]]
        self.prompts: list[list[int]] = prompt if isinstance(prompt[0], list) else [prompt]
        self.n: int = self.given.get("n", 1)
        self.streams: bool = self.fields.get("stream", False)

    # --- for the engine ---

    def _extra_args(self) -> dict[str, Any] | None:
        names = ("kv_transfer_params", "ec_transfer_params")
        extra = self.given.get("extra_args", {}) | {k: self.fields[k] for k in names if k in self.fields}
        return extra or None

    def _structure(self) -> dict[str, Any] | None:
        if "structured_outputs" not in self.given:
            return None
        chosen = {name: value for name, value in self.given["structured_outputs"].items() if value is not None}
        tag = chosen.get("structural_tag")
        if isinstance(tag, dict):
            chosen["structural_tag"] = json.dumps(tag, separators=(",", ":"))
        return chosen | {"_backend": BACKEND}

    def sampling(self, prompt: list[int], number: int) -> wire.SamplingParams:
        """Of that choice of that prompt."""
        left_out = (*TEXT_FIELDS, *COMMON_FIELDS)
        params = {name: value for name, value in self.given.items() if name not in left_out}
        # a negative zero is the default, and travels as such
        params = {name: 0 if value == 0 and isinstance(value, float) else value for name, value in params.items()}
        if "seed" in params:
            params["seed"] += number
        ignores_eos = params.get("ignore_eos", False)
        stops = params.get("stop_token_ids", []) + EOS_IDS[1:]
        params["_all_stop_token_ids"] = stops + EOS_IDS[:1]
        if not ignores_eos:
            params["stop_token_ids"] = stops
            params["_eos_token_id"] = EOS_IDS[0]
        params.setdefault("max_tokens", 16 if self.is_completion else MODEL_LEN - len(prompt))
        params["structured_outputs"] = self._structure()
        params["extra_args"] = self._extra_args()
        bias = params.get("logit_bias") or None
        params["logit_bias"] = {int(token): value for token, value in bias.items()} if bias else None
        return msgspec.convert(params, wire.SamplingParams)

    def check_adds(self, adds: list[wire.EngineCoreRequest]) -> None:
        places = [(prompt, number) for prompt in self.prompts for number in range(self.n)]
        assert len(adds) == len(places)
        assert len({add.request_id for add in adds}) == len(adds)
        assert len({add.external_req_id for add in adds}) == 1
        for add, (prompt, number) in zip(adds, places, strict=True):
            assert add.prompt_token_ids == prompt
            wanted = self.sampling(prompt, number)
            for name in wire.SamplingParams.__struct_fields__:
                found, meant = canonical(getattr(add.sampling_params, name)), canonical(getattr(wanted, name))
                assert found == meant, f"{name} is {found} at the engine, not {meant}"
            self._check_others(add)

    def _check_others(self, add: wire.EngineCoreRequest) -> None:
        fields = self.fields
        assert add.priority == fields.get("priority", 0)
        assert add.cache_salt == fields.get("cache_salt")
        assert add.data_parallel_rank == fields.get("data_parallel_rank")
        assert add.lora_request == (LORA if fields.get("model") == ADAPTER else None)
        assert "request_id" not in fields or add.external_req_id == fields["request_id"]
        headers = dict(self.body.headers)
        assert add.trace_headers == (headers if "traceparent" in headers else None)

    # --- for the client ---

    @cached_property
    def choices(self) -> list[Choice]:
        found = []
        for prompt in self.prompts:
            for number in range(self.n):
                params = self.sampling(prompt, number)
                stops = {*params.stop_token_ids}
                stops |= set() if params.eos_token_id is None else {params.eos_token_id}
                answer = expected(prompt, params.max_tokens, VOCAB_SIZE, stops, params.min_tokens)
                found.append(Choice(*answer))
        return found

    def usage(self) -> dict[str, Any]:
        prompt_tokens = sum(map(len, self.prompts))
        completion_tokens = sum(len(choice.tokens) for choice in self.choices)
        return {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion_tokens,
            "total_tokens": prompt_tokens + completion_tokens,
            "prompt_tokens_details": {"cached_tokens": sum(min(CACHED_TOKENS, len(p)) for p in self.prompts)},
        }

    def transfer_params(self) -> dict[str, Any]:
        """They come back from an engine that echoes them."""
        extra = self._extra_args() or {}
        return {name: extra.get(name) for name in ("kv_transfer_params", "ec_transfer_params")}

    @property
    def has_logprobs(self) -> bool:
        return "logprobs" in self.given or "logprob_token_ids" in self.given

    @property
    def wants_usage(self) -> bool:
        return any((self.fields.get("stream_options") or {}).values())

    @property
    def is_usage_continuous(self) -> bool:
        return bool((self.fields.get("stream_options") or {}).get("continuous_usage_stats"))
