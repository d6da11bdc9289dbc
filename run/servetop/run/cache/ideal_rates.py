"""Computes, at the end of a run, what an infinite prefix cache would have found in prompts of a dataset.

The dataset is at hand then; a summary made elsewhere reads the result from a note.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass

import numpy as np

from servetop.analysis.prefix_cache.cache_notes import SOURCE, ideal_note
from servetop.analysis.prefix_cache.ideal_hits import HitCount, cold_stages, own_draws
from servetop.core.config import RANDOM, RunConfig
from servetop.core.errors import ServetopError
from servetop.core.events import Note, Severity
from servetop.core.interfaces.dialect import Prompt
from servetop.recordings.read.reader import RecordingReader

MOST_PROMPTS = 20_000
"""Beyond it the ideal is unknown, because it takes too long."""
_USUAL_BLOCK = 16


def ideal_rates_note(reader: RecordingReader, config: RunConfig, *, at: float) -> Note | None:
    """Return the note for the end of a run; None if the summary needs none, or the dataset cannot be read any more."""
    workload = config.workload
    known = workload.dataset in RANDOM or workload.conversational
    if known or workload.n > 1 or workload.model_mix or any(stage.settings for stage in config.stages):
        return None
    streams = _streams(reader, config)
    if not streams or sum(max(stream.stage_of, default=-1) + 1 for stream in streams) > MOST_PROMPTS:
        return None
    try:
        cold = cold_stages(reader.stages(), config)
        counts: dict[int, HitCount] = {}
        for stream in streams:
            prompts = _prompts(config, reader, seed=stream.seed)
            counts |= _counts(prompts, stream.stage_of, cold, block_size=_block_size(reader))
    except (ServetopError, OSError):
        return None
    warmups = {stage.index for stage in reader.stages() if stage.warmup}
    measured = {stage: count for stage, count in counts.items() if stage not in warmups}
    if not measured:
        return None
    text = ideal_note(
        {stage: count.rate for stage, count in measured.items()}, sum(measured.values(), HitCount(0, 0)).rate
    )
    return Note(at=at, severity=Severity.INFO, source=SOURCE, text=text)


@dataclass(frozen=True, slots=True)
class _Stream:
    """A prompt stream, and the stage of each position of it whose request had a first token."""

    seed: tuple[int, int]
    stage_of: Mapping[int, int]


def _streams(reader: RecordingReader, config: RunConfig) -> list[_Stream]:
    """The stream of each stage with one of its own, whose salted prompts share nothing with others; else one of all."""
    own = own_draws(reader.stages())
    firsts: dict[int, int] = {}
    found: dict[int | None, dict[int, int]] = {}
    for stage, number, first_token_at in reader.request_rows(("stage", "id", "first_token_at")):
        if stage in own:
            firsts[stage] = min(number, firsts.get(stage, number))
        if first_token_at is not None:
            found.setdefault(stage if stage in own else None, {})[number] = stage
    return [
        _Stream(
            seed=(config.seed, 0 if key is None else own[key]),
            stage_of={number - (0 if key is None else firsts[key]): stage for number, stage in stage_of.items()},
        )
        for key, stage_of in found.items()
    ]


def _prompts(config: RunConfig, reader: RecordingReader, *, seed: tuple[int, int]) -> Iterator[Prompt]:
    from servetop.workload.build import prompts_for

    facts = reader.header.engine
    return prompts_for(config.workload, seed, max_model_len=None if facts is None else facts.max_model_len).prompts()


def _block_size(reader: RecordingReader) -> int:
    facts = reader.header.engine
    return (facts and facts.prefix_block) or _USUAL_BLOCK


def _counts(
    prompts: Iterator[Prompt], stage_of: Mapping[int, int], cold: Set[int], *, block_size: int
) -> dict[int, HitCount]:
    """Hits of each stage, in the order of the requests; the cache is empty when a cold cell begins."""
    from servetop.workload.datasets.repeated_prompts import Seen, found_shares

    counts: dict[int, HitCount] = {}
    seen: Seen = set()
    numbered = enumerate(itertools.islice(prompts, max(stage_of) + 1))
    sent = ((stage_of[number], prompt) for number, prompt in numbered if number in stage_of)
    for stage, part in itertools.groupby(sent, key=lambda pair: pair[0]):
        if stage in cold:
            seen = set()
        found = np.array(list(found_shares((prompt for _, prompt in part), block_size=block_size, seen=seen)))
        count = HitCount(float((found[:, 0] * found[:, 1]).sum()), float(found[:, 1].sum()))
        counts[stage] = counts.get(stage, HitCount(0, 0)) + count
    return counts
