"""Computes, at the end of a run, what an infinite prefix cache would have found in prompts of a dataset.

The dataset is at hand then; a summary made elsewhere reads the result from a note.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Set

import numpy as np

from servetop.analysis.prefix_cache.cache_notes import SOURCE, ideal_note
from servetop.analysis.prefix_cache.ideal_hits import HitCount, cold_stages
from servetop.core.config import RANDOM, RunConfig
from servetop.core.errors import ServetopError
from servetop.core.events import Note, Severity
from servetop.core.interfaces.dialect import Prompt
from servetop.recordings.read.reader import RecordingReader

MOST_PROMPTS = 20_000
"""Beyond it the ideal is unknown, because it takes too long."""
_USUAL_BLOCK = 16


def ideal_rates_note(reader: RecordingReader, config: RunConfig, *, at: float) -> Note | None:
    """The note for the end of a run; None if the summary needs none, or the dataset cannot be read any more."""
    workload = config.workload
    known = workload.dataset in RANDOM or workload.conversational
    if known or workload.n > 1 or workload.model_mix:
        return None
    rows = reader.request_rows(("stage", "id"), where="first_token_at IS NOT NULL")
    stage_of: Mapping[int, int] = {int(number): int(stage) for stage, number in rows}
    if not stage_of or max(stage_of) >= MOST_PROMPTS:
        return None
    try:
        cold = cold_stages(reader.stages(), config)
        counts = _counts(_prompts(config, reader), stage_of, cold, block_size=_block_size(reader))
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


def _prompts(config: RunConfig, reader: RecordingReader) -> Iterator[Prompt]:
    from servetop.workload.build import prompts_for

    facts = reader.header.engine
    return prompts_for(
        config.workload, (config.seed, 0), max_model_len=None if facts is None else facts.max_model_len
    ).prompts()


def _block_size(reader: RecordingReader) -> int:
    facts = reader.header.engine
    return (facts and facts.prefix_block) or _USUAL_BLOCK


def _counts(
    prompts: Iterator[Prompt], stage_of: Mapping[int, int], cold: Set[int], *, block_size: int
) -> dict[int, HitCount]:
    """Hits of each stage, in the order of the requests; the cache is empty when a cold cell begins."""
    from servetop.workload.prompts.repeated_prompts import Seen, found_shares

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
