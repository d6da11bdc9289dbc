"""The requests of a workload as the simulated engine takes them: token counts, block hashes, turns of conversations."""

from __future__ import annotations

import dataclasses
import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass

from servetop.core.config import WorkloadConfig
from servetop.simulator.model.settings import SimSpec
from servetop.simulator.scheduling.sim_request import SimRequest
from servetop.simulator.server.tokens import draw_output_length
from servetop.workload.prompts.request_lengths import RequestLengths, SharedTokens, request_lengths
from servetop.workload.random_cancellation import tokens_before_cancel

_CONVERSATION_IDENTITIES = 1 << 48
"""Identities of conversations as shared tokens start here."""
_MOST_TURNS = 10_000


@dataclass(frozen=True, slots=True, eq=False)
class ClientRequest(SimRequest):
    """One request of a client, or one turn of a conversation."""

    number: int = 0
    """Ascending; turns of conversations count on from that of the first turn."""
    copies: int = 1
    """Completions wanted."""
    cancelled: bool = False
    """The client cancels it; `output_tokens` are those that it waits for."""
    lengths: RequestLengths | None = None
    """Of a conversation, with the turns that follow."""


class ClientRequests:
    """The requests of a run, in order, without end."""

    def __init__(self, workload: WorkloadConfig, spec: SimSpec, *, seed: int) -> None:
        self._workload = workload
        self._seed = seed
        self._max_model_len = spec.context_limit if workload.clip_lengths else None
        self._block_size = spec.engine.block_size if spec.engine.prefix_cache else 0
        self._source = request_lengths(workload, (seed, 0), max_model_len=spec.context_limit)
        self._numbers = itertools.count(step=_MOST_TURNS if workload.conversational else 1)
        self._equal: dict[tuple[int, int, int], ClientRequest] = {}
        self._distinct = workload.n > 1 or workload.conversational or workload.cancel_fraction > 0

    def take(self) -> ClientRequest:
        """The next request."""
        lengths, number = next(self._source), next(self._numbers)
        if self._distinct or lengths.shared or lengths.model_stops:
            return self._request(lengths, number=number)
        key = (lengths.prompt_tokens, lengths.output_tokens, lengths.max_tokens)
        if key not in self._equal:
            self._equal[key] = ClientRequest(*key)
        return self._equal[key]

    def skip(self, count: int) -> None:
        """Leave out the next `count` requests."""
        for _ in range(count):
            next(self._source)
            next(self._numbers)

    def following(self, before: ClientRequest) -> ClientRequest | None:
        """The next turn of a conversation, its prompt all that went before; None when there is none."""
        lengths = before.lengths
        if lengths is None or not lengths.turns:
            return None
        question, output = lengths.turns[0]
        prompt = before.prompt_tokens + before.output_tokens + question
        if self._max_model_len is not None and prompt + output > self._max_model_len:
            return None
        turn = dataclasses.replace(
            lengths, prompt_tokens=prompt, output_tokens=output, max_tokens=output, turns=lengths.turns[1:]
        )
        return self._request(turn, number=before.number + 1)

    def _request(self, lengths: RequestLengths, *, number: int) -> ClientRequest:
        workload, output = self._workload, lengths.output_tokens
        if lengths.model_stops:
            output = draw_output_length(random.Random(self._seed << 40 | number), low=1, high=output)
        cancelled = tokens_before_cancel(
            workload.cancel_fraction, seed=self._seed, number=number, output_tokens=lengths.output_tokens
        )
        shared = lengths.shared
        if workload.conversational:
            conversation = number // _MOST_TURNS
            rest = lengths.prompt_tokens - sum(tokens for _, tokens in shared)
            shared = (*shared, (_CONVERSATION_IDENTITIES + conversation, rest))
        return ClientRequest(
            prompt_tokens=lengths.prompt_tokens,
            output_tokens=output if cancelled is None else min(cancelled, output),
            max_tokens=lengths.max_tokens,
            prefix=block_hashes(shared, lengths.prompt_tokens, block_size=self._block_size),
            number=number,
            copies=workload.n,
            cancelled=cancelled is not None and cancelled < output,
            lengths=lengths if workload.conversational else None,
        )


def block_hashes(shared: Sequence[SharedTokens], prompt_tokens: int, *, block_size: int) -> tuple[int, ...]:
    """Chained hashes of the prompt's leading full blocks that consist of shared tokens; none for block size 0."""
    if not block_size or not shared:
        return ()
    end = min(prompt_tokens, sum(tokens for _, tokens in shared))
    hashes: list[int] = []
    pieces: list[tuple[int, int]] = []
    before, filled = 0, 0
    for identity, tokens in shared:
        offset = 0
        while offset < tokens and len(hashes) * block_size + block_size <= end:
            pieces.append((identity, offset))
            taken = min(tokens - offset, block_size - filled)
            offset, filled = offset + taken, filled + taken
            if filled == block_size:
                before = hash((before, *pieces))
                hashes.append(before)
                pieces, filled = [], 0
    return tuple(hashes)
