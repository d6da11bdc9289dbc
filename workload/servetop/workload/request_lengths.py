"""Requests as token counts only: the draws of the prompts that a run sends, without their texts or token ids."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from servetop.core.config import WorkloadConfig
from servetop.workload.build import shared_prefix
from servetop.workload.datasets.catalogue import texts_of, trace_of
from servetop.workload.datasets.rows import DatasetRow
from servetop.workload.datasets.traces import RequestTrace
from servetop.workload.prompts.conversation_scripts import turn_counts
from servetop.workload.prompts.hit_rate_prompts import USUAL_BLOCK, shared_tokens
from servetop.workload.prompts.length_sources import LengthPair, LengthSource
from servetop.workload.prompts.lengths import expected_lengths, output_limit
from servetop.workload.prompts.prompt_source import prefix_picks
from servetop.workload.token_estimate import estimated_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLengths:
    """One request, or the first turn of a conversation."""

    prompt_tokens: int
    output_tokens: int
    """Tokens that the completion is expected to have."""
    max_tokens: int
    """Output tokens that the request allows."""
    shared: tuple[SharedTokens, ...] = ()
    """What the prompt begins with that other prompts may begin with too, in order."""
    turns: tuple[LengthPair, ...] = ()
    """Question and output tokens of the following turns of a conversation."""
    model_stops: bool = False
    """The model ends the completion before `output_tokens` if it likes (no `ignore_eos`)."""


SharedTokens = tuple[int, int]
"""Identity of a run of tokens that other prompts have too, and its length."""
_BLOCK_IDENTITIES = 1 << 32
"""Identities of a trace's blocks start here; those of shared prefixes are small."""


def request_lengths(
    workload: WorkloadConfig,
    seed: Sequence[int],
    *,
    max_model_len: int | None = None,
    block_size: int = USUAL_BLOCK,
) -> Iterator[RequestLengths]:
    """Return the requests of a workload, without end, in the order in which a run sends them.

    Prompts of a `cache_hit_rate` share blocks of `block_size` tokens. With `clip_lengths` they are shortened to
    `max_model_len`, as prompts are. Texts count as their estimated tokens.
    """
    lengths, limit = expected_lengths(workload, seed), output_limit(workload)
    drawn = _drawn(workload, lengths, tuple(seed), block_size=block_size)
    source = _requests(workload, drawn, tuple(seed), limit=limit)
    if workload.clip_lengths and max_model_len is not None:
        return (_clipped(request, max_model_len) for request in source)
    return source


def _requests(
    workload: WorkloadConfig, drawn: _Drawn, seed: tuple[int, ...], *, limit: int | None
) -> Iterator[RequestLengths]:
    prefix_len, count = shared_prefix(workload)
    picks = prefix_picks(count, seed)
    for shared, (first, *following) in drawn:
        prefix = ((next(picks), prefix_len),) if prefix_len else ()
        yield RequestLengths(
            prompt_tokens=first[0] + prefix_len,
            output_tokens=first[1],
            max_tokens=limit or first[1],
            shared=(*prefix, *shared),
            turns=tuple(following),
            model_stops=not workload.ignore_eos and limit is None,
        )


_Drawn = Iterator[tuple[tuple[SharedTokens, ...], list[LengthPair]]]
"""What a prompt shares with others, and the lengths of each turn."""


def _drawn(workload: WorkloadConfig, lengths: LengthSource, seed: tuple[int, ...], *, block_size: int) -> _Drawn:
    if workload.cache_hit_rate is not None:
        picks = prefix_picks(workload.num_prefixes, seed)
        prompts = shared_tokens(workload, lengths.pairs(), block_size=block_size)
        return ((((pick, shared),), [pair]) for pick, (pair, shared) in zip(picks, prompts, strict=False))
    return _turns(workload, lengths, seed) if workload.conversational else _single(workload, lengths, seed)


def _single(workload: WorkloadConfig, lengths: LengthSource, seed: tuple[int, ...]) -> _Drawn:
    trace, texts, own_lengths = trace_of(workload, seed=seed[0]), texts_of(workload), not workload.lengths
    if trace is not None:
        return _of_trace(trace, lengths if workload.lengths else None)
    if texts is not None:
        return _of_texts(texts.endless(), lengths, own_lengths=own_lengths)
    return (((), [pair]) for pair in lengths.pairs())


def _of_trace(trace: RequestTrace, lengths: LengthSource | None) -> _Drawn:
    replaced = None if lengths is None else lengths.pairs()
    for row in trace.endless():
        pair = (row.input_tokens or 1, row.output_tokens or 1) if replaced is None else next(replaced)
        blocks = ((_BLOCK_IDENTITIES + block, trace.file_format.block_tokens) for block in row.blocks)
        yield tuple(blocks), [pair]


def _of_texts(rows: Iterator[DatasetRow], lengths: LengthSource, *, own_lengths: bool) -> _Drawn:
    for row, (_, output) in zip(rows, lengths.pairs(), strict=False):
        yield (), [(estimated_tokens(row.text or ""), (row.output_tokens if own_lengths else None) or output)]


def _turns(workload: WorkloadConfig, lengths: LengthSource, seed: tuple[int, ...]) -> _Drawn:
    pairs, counts, texts = lengths.pairs(), turn_counts(workload, seed), texts_of(workload)
    if texts is None:
        return (((), list(itertools.islice(pairs, count))) for count in counts)
    return _of_conversations(texts.endless(), pairs, counts, own_lengths=not workload.lengths)


def _of_conversations(
    rows: Iterator[DatasetRow], pairs: Iterator[LengthPair], counts: Iterator[int], *, own_lengths: bool
) -> _Drawn:
    for row, count in zip(rows, counts, strict=False):
        outputs = list(itertools.islice(pairs, len(row.turns)))
        turns = [
            (estimated_tokens(turn.question), (turn.output_tokens if own_lengths else None) or output)
            for turn, (_, output) in zip(row.turns[:count], outputs, strict=False)
        ]
        system = estimated_tokens(row.text) if row.text else 0
        yield (), [(turns[0][0] + system, turns[0][1]), *turns[1:]]


def _clipped(request: RequestLengths, max_model_len: int) -> RequestLengths:
    if request.prompt_tokens + request.max_tokens <= max_model_len:
        return request
    limit = max(1, min(request.max_tokens, max_model_len - 1))
    return dataclasses.replace(
        request,
        prompt_tokens=max(1, min(request.prompt_tokens, max_model_len - limit)),
        output_tokens=min(request.output_tokens, limit),
        max_tokens=limit,
    )
