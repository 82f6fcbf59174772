"""What a test engine answers to one request, output by output: the usual tokens (tokens.py) until a stop id or
max_tokens, or the steps of a script. Knows no socket; engine.py sends what comes out of here."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from interop import messages as wire
from interop.tensors import INLINE_BELOW, Packer, row
from interop.tokens import TokenSource


@dataclass
class Step:
    """One output of a scripted request: so many tokens, and how it ends, if it does. The last one must."""

    tokens: int
    finish: int | None = None
    stop_reason: int | str | None = None
    named_only: bool = False  # no output, just a name in finished_requests: then there are no tokens either
    dies: bool = False  # the engine, with this request and all the others: nothing of this step gets out


Script = Callable[[wire.EngineCoreRequest], list[Step] | None]


@dataclass(kw_only=True)
class AnswerOptions:
    vocab_size: int = 32000
    tokens_per_step: int = 4
    older: bool = False  # outputs from before ec_transfer_params
    script: Script | None = None  # None, or its answer None: the usual tokens
    tensor_names: str = "numpy"  # or "torch"
    inline_below: int = INLINE_BELOW
    cached_tokens: int = 0  # that it says of each prompt, as far as that goes
    echo_transfer_params: bool = False  # back in the last output


class Request:
    """One that the engine has, and how far it is."""

    def __init__(self, add: wire.EngineCoreRequest, payload: bytes, options: AnswerOptions) -> None:
        self.add = add
        self.payload = payload
        self.tokens = TokenSource(add.prompt_token_ids, options.vocab_size)
        self.steps = options.script(add) if options.script else None  # that are left of its script
        self.sent = 0
        self.has_ended = False
        self._options = options
        self._begun = False  # its first output, with what belongs to the prompt, is out

    @property
    def id(self) -> str:
        return self.add.request_id

    @property
    def stop_ids(self) -> set[int]:
        params = self.add.sampling_params
        eos = set() if params.ignore_eos or params.eos_token_id is None else {params.eos_token_id}
        return {*params.stop_token_ids} | eos

    @property
    def kills_the_engine(self) -> bool:
        """Its next step is the engine's death."""
        return self.steps is not None and self.steps[0].dies

    def advance(self, packer: Packer) -> Any:
        """Its next output, or None where it has ended without one."""
        if self.steps is not None:
            return self._play(self.steps.pop(0), packer)
        params = self.add.sampling_params
        tokens: list[int] = []
        reason: int | None = None
        stopped_by: int | None = None
        while reason is None and len(tokens) < self._options.tokens_per_step:
            tokens.append(self.tokens[self.sent + len(tokens)])
            count = self.sent + len(tokens)
            if tokens[-1] in self.stop_ids and count > params.min_tokens:
                reason = wire.FINISH_STOP
                stopped_by = None if tokens[-1] == params.eos_token_id else tokens[-1]
            elif count >= params.max_tokens:
                reason = wire.FINISH_LENGTH
        self.has_ended = reason is not None
        return self.output(tokens, packer, finish_reason=reason, stop_reason=stopped_by)

    def output(self, tokens: list[int], packer: Packer | None = None, **fields: Any) -> Any:
        """An output; the first one carries prefill_stats. With a packer, it has logprobs as asked for."""
        if packer:
            fields |= self._logprobs(tokens, packer)
        if self._options.echo_transfer_params and fields.get("finish_reason") is not None:
            extra = self.add.sampling_params.extra_args or {}
            fields["kv_transfer_params"] = extra.get("kv_transfer_params")
            if not self._options.older:
                fields["ec_transfer_params"] = extra.get("ec_transfer_params")
        if not self._begun:
            fields["prefill_stats"] = self._prefill_stats()
        self._begun = True
        self.sent += len(tokens)
        kind = wire.OlderEngineCoreOutput if self._options.older else wire.EngineCoreOutput
        return kind(self.id, tokens, **fields)

    def _play(self, step: Step, packer: Packer) -> Any:
        self.has_ended = step.finish is not None or step.named_only
        if step.named_only:
            return None
        tokens = [self.tokens[self.sent + i] for i in range(step.tokens)]
        return self.output(tokens, packer, finish_reason=step.finish, stop_reason=step.stop_reason)

    def _logprobs(self, tokens: list[int], packer: Packer) -> dict[str, Any]:
        """The tensors that were asked for: of these tokens, and with the first output those of the prompt."""
        params, vocab_size = self.add.sampling_params, self._options.vocab_size
        wide = self._options.tensor_names == "torch"
        fields: dict[str, Any] = {}
        count = params.logprobs if params.logprobs is not None else len(params.logprob_token_ids or ()) or None
        if count is not None and tokens:
            rows = [row(token, self.sent + i, count, vocab_size) for i, token in enumerate(tokens)]
            fields["new_logprobs"] = packer.logprobs(rows, wide)
        prompt = self.add.prompt_token_ids
        if params.prompt_logprobs is not None and not self._begun and len(prompt) > 1:
            rows = [row(token, i, params.prompt_logprobs, vocab_size) for i, token in enumerate(prompt) if i > 0]
            fields["new_prompt_logprobs_tensors"] = packer.logprobs(rows, wide)
        return fields

    def _prefill_stats(self) -> dict[str, int]:
        size = len(self.add.prompt_token_ids)
        cached = min(self._options.cached_tokens, size)
        return {
            "num_prompt_tokens": size,
            "num_computed_tokens": size - cached,
            "num_cached_tokens": cached,
            "num_local_cached_tokens": cached,
            "num_external_cached_tokens": 0,
            "num_cache_creation_tokens": size - cached,
        }
