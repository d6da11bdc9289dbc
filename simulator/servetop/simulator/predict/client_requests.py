"""The requests of a workload for a simulated engine: token counts, block hashes and turns of conversations."""

from __future__ import annotations

import dataclasses
import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass

from servetop.core.config import WorkloadConfig
from servetop.simulator.model.settings import SimSpec
from servetop.simulator.model.sim_request import SimRequest
from servetop.simulator.server.tokens import draw_output_length
from servetop.workload.prompts.random_cancellation import tokens_before_cancel
from servetop.workload.request_lengths import RequestLengths, SharedTokens, request_lengths
from servetop.workload.stages.stage_draws import StageDraws, Stream

_CONVERSATION_IDS = 1 << 48
"""First id of the conversations, or of whole prompts, among the shared tokens."""
_MAX_TURNS = 10_000


@dataclass(frozen=True, slots=True, eq=False)
class ClientRequest(SimRequest):
    """One request of a client, or one turn of a conversation."""

    number: int = 0
    """Ascending; the turns of a conversation have consecutive numbers."""
    copies: int = 1
    """Number of completions (`n`)."""
    cancelled: bool = False
    """Whether the client cancels the request, after `output_tokens` tokens."""
    lengths: RequestLengths | None = None
    """Lengths of a conversation's turn and those that follow; None for a single request."""


class ClientRequests:
    """An endless sequence of the requests of a stage, or of stages that share their prompts."""

    def __init__(
        self, workload: WorkloadConfig, spec: SimSpec, *, draws: StageDraws, whole_prompts: bool = False
    ) -> None:
        """With `whole_prompts` each request has the hashes of its whole prompt, which a later run may find cached."""
        self._workload = workload
        self._whole_prompts = whole_prompts
        self._seed = draws.prompts
        self._salt = hash((draws.key or 0, draws.salt or 0))
        self._max_model_len = spec.context_limit if workload.clip_lengths else None
        self._block_size = spec.engine.block_size if spec.engine.prefix_cache else 0
        self._source = request_lengths(
            workload, draws.prompts, max_model_len=spec.context_limit, block_size=spec.engine.block_size
        )
        self._turns = _MAX_TURNS if workload.conversational else 1
        self._numbers = itertools.count(step=self._turns)
        self._interned: dict[tuple[int, int, int], ClientRequest] = {}
        self._distinct = whole_prompts or workload.n > 1 or workload.conversational or workload.cancel_fraction > 0

    def take(self) -> ClientRequest:
        """Return the next request."""
        lengths, number = next(self._source), next(self._numbers)
        if self._distinct or lengths.shared or lengths.model_stops:
            return self._request(lengths, number=number)
        key = (lengths.prompt_tokens, lengths.output_tokens, lengths.max_tokens)
        if key not in self._interned:
            self._interned[key] = ClientRequest(*key)
        return self._interned[key]

    def next_turn(self, previous: ClientRequest) -> ClientRequest | None:
        """Return the next turn of a conversation, whose prompt includes all previous turns; None after the last one."""
        lengths = previous.lengths
        if lengths is None or not lengths.turns:
            return None
        question, output = lengths.turns[0]
        prompt = previous.prompt_tokens + previous.output_tokens + question
        if self._max_model_len is not None and prompt + output > self._max_model_len:
            return None
        turn = dataclasses.replace(
            lengths, prompt_tokens=prompt, output_tokens=output, max_tokens=output, turns=lengths.turns[1:]
        )
        return self._request(turn, number=previous.number + 1)

    def _request(self, lengths: RequestLengths, *, number: int) -> ClientRequest:
        workload, output = self._workload, lengths.output_tokens
        if lengths.model_stops:
            output = draw_output_length(random.Random(hash((*self._seed, number))), low=1, high=output)
        conversation, turn = divmod(number, self._turns)
        cancelled = tokens_before_cancel(
            workload.cancel_fraction,
            seed=self._seed,
            number=conversation,
            turn=turn + 1,
            output_tokens=lengths.output_tokens,
        )
        shared = lengths.shared
        if workload.conversational or self._whole_prompts:
            rest = lengths.prompt_tokens - sum(tokens for _, tokens in shared)
            shared = (*shared, (_CONVERSATION_IDS + conversation, rest))
        return ClientRequest(
            prompt_tokens=lengths.prompt_tokens,
            output_tokens=output if cancelled is None else min(cancelled, output),
            max_tokens=lengths.max_tokens,
            prefix=block_hashes(shared, lengths.prompt_tokens, block_size=self._block_size, salt=self._salt),
            number=number,
            copies=workload.n,
            cancelled=cancelled is not None and cancelled < output,
            lengths=lengths if workload.conversational else None,
        )


class RequestStreams:
    """The requests of the stages of a run; a stage continues those of the stage before if it shares its stream."""

    def __init__(self, workload: WorkloadConfig, spec: SimSpec, *, whole_prompts: bool = False) -> None:
        self._workload = workload
        self._spec = spec
        self._whole_prompts = whole_prompts
        self._streams: dict[Stream, ClientRequests] = {}
        """Those of the latest stage, and perhaps of the one before, whose requests may still wait."""

    def of(self, draws: StageDraws) -> ClientRequests:
        """Return the requests of the stage with these draws."""
        if draws.stream not in self._streams:
            self._streams = dict(list(self._streams.items())[-1:])
            self._streams[draws.stream] = ClientRequests(
                self._workload, self._spec, draws=draws, whole_prompts=self._whole_prompts
            )
        return self._streams[draws.stream]


def block_hashes(
    shared: Sequence[SharedTokens], prompt_tokens: int, *, block_size: int, salt: int = 0
) -> tuple[int, ...]:
    """Return chained hashes of the prompt's leading full blocks of shared tokens; none for block size 0.

    Prompts with different salts share nothing.
    """
    if not block_size or not shared:
        return ()
    end = min(prompt_tokens, sum(tokens for _, tokens in shared))
    hashes: list[int] = []
    parts: list[tuple[int, int]] = []
    parent, filled = salt, 0
    for shared_id, tokens in shared:
        offset = 0
        while offset < tokens and len(hashes) * block_size + block_size <= end:
            parts.append((shared_id, offset))
            taken = min(tokens - offset, block_size - filled)
            offset, filled = offset + taken, filled + taken
            if filled == block_size:
                parent = hash((parent, *parts))
                hashes.append(parent)
                parts, filled = [], 0
    return tuple(hashes)
