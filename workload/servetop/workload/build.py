"""Builds the prompts and the arrivals that a workload configuration describes."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from servetop.core.config import RANDOM, WorkloadConfig
from servetop.core.interfaces.dialect import Prompt
from servetop.workload.arrivals.arrival_spec import parse_arrivals, seeded_arrivals
from servetop.workload.prompts.conversation_scripts import RandomConversations
from servetop.workload.prompts.lengths import lengths_for
from servetop.workload.prompts.prompt_source import (
    CommonWords,
    PromptSource,
    RandomPrompts,
    SharedPrefixes,
    TokenIds,
    Vocabulary,
)
from servetop.workload.stages.stage_draws import StageDraws, Stream
from servetop.workload.stages.stage_run import StageArrivals

if TYPE_CHECKING:
    from servetop.workload.datasets.shared_dataset import SharedDataset
    from servetop.workload.prompts.hit_rate_prompts import HitRatePrompts

REPEATED_PREFIX, REPEATED_PREFIXES = 256, 10
"""Defaults of vLLM's dataset `prefix_repetition`: tokens of a prefix, and number of prefixes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineTraits:
    """What the prompts of a workload depend on in the engine."""

    as_text: bool = False
    """It accepts no token ids."""
    token_ids: tuple[int, ...] = ()
    """Ordinary tokens of its model; empty: unknown."""
    block_size: int | None = None
    """Tokens of a KV block, for `cache_hit_rate`; None: not reported."""


def prompts_for(
    workload: WorkloadConfig,
    seed: Sequence[int],
    *,
    max_model_len: int | None = None,
    corpus_ids: tuple[int, ...] = (),
    dataset: SharedDataset | None = None,
    engine: EngineTraits | None = None,
) -> PromptSource:
    """Return the prompts of a workload; `corpus_ids` are the engine's token ids of a corpus.

    `dataset` is the workload's file, which other cells read too, with the counts of its unusable rows; None: a new one.

    Prompts consist of token ids where endpoint and engine accept them, of words otherwise.
    """
    engine = engine or EngineTraits()
    vocabulary = vocabulary_of(workload, engine)
    source: PromptSource
    if workload.cache_hit_rate is not None:
        source = hit_rate_prompts(workload, tuple(seed), vocabulary=vocabulary, block_size=engine.block_size)
    else:
        source = _source(workload, tuple(seed), vocabulary=vocabulary, ids=corpus_ids, dataset=dataset)
    if workload.tokenizer:
        from servetop.workload.prompts.local_tokenizer import CountedPrompts, load_tokenizer

        source = CountedPrompts(source, load_tokenizer(workload.tokenizer), fit=not _has_texts(workload))
    if workload.model_mix:
        from servetop.workload.prompts.model_mix import MixedModels

        source = MixedModels(source, workload.model_mix, seed)
    if workload.clip_lengths and max_model_len is not None:
        source = ClippedPrompts(source, max_model_len)
    if workload.cancel_fraction:
        from servetop.workload.prompts.random_cancellation import CancelledPrompts

        source = CancelledPrompts(source, workload.cancel_fraction, tuple(seed))
    return source


def vocabulary_of(workload: WorkloadConfig, engine: EngineTraits) -> Vocabulary:
    """Return the pieces of random prompts: token ids where endpoint and engine accept them, else words."""
    as_text = engine.as_text or workload.endpoint != "completions" or workload.conversational
    return CommonWords() if as_text else TokenIds(engine.token_ids)


def hit_rate_prompts(
    workload: WorkloadConfig, seed: tuple[int, ...], *, vocabulary: Vocabulary, block_size: int | None
) -> HitRatePrompts:
    """Return the prompts of a workload with a `cache_hit_rate`."""
    from servetop.workload.prompts.hit_rate_prompts import USUAL_BLOCK, HitRatePrompts

    return HitRatePrompts(
        vocabulary=vocabulary,
        lengths=lengths_for(workload, seed).pairs,
        rate=workload.cache_hit_rate or 0.0,
        block_size=block_size or USUAL_BLOCK,
        num_prefixes=workload.num_prefixes,
        seed=seed,
    )


def _source(
    workload: WorkloadConfig,
    seed: tuple[int, ...],
    *,
    vocabulary: Vocabulary,
    ids: tuple[int, ...],
    dataset: SharedDataset | None,
) -> PromptSource:
    lengths = lengths_for(workload, seed).pairs
    prefixes = shared_prefixes(workload, vocabulary, seed)
    if workload.dataset not in RANDOM:
        from servetop.workload.datasets.shared_dataset import SharedDataset
        from servetop.workload.prompts.dataset_prompts import DatasetPrompts

        dataset = dataset or SharedDataset(workload)
        drawn = DatasetPrompts(workload, lengths=lengths, prefixes=prefixes, dataset=dataset, seed=seed)
        return drawn.source(vocabulary, ids)
    if workload.conversational:
        return RandomConversations(lengths=lengths, prefixes=prefixes, workload=workload, seed=seed)
    return RandomPrompts(vocabulary=vocabulary, lengths=lengths, prefixes=prefixes, seed=seed)


def _has_texts(workload: WorkloadConfig) -> bool:
    from servetop.workload.datasets.catalogue import has_texts

    return has_texts(workload.dataset)


def shared_prefix(workload: WorkloadConfig) -> tuple[int, int]:
    """Tokens of the prefix that prompts share, 0 for none, and the number of such prefixes."""
    length, count = workload.prefix_len, workload.num_prefixes
    if workload.dataset == "prefix_repetition":
        return length or REPEATED_PREFIX, count if count > 1 else REPEATED_PREFIXES
    return length, count


def shared_prefixes(workload: WorkloadConfig, vocabulary: Vocabulary, seed: tuple[int, ...]) -> SharedPrefixes:
    """Return the pool of prefixes of a workload without a `cache_hit_rate`."""
    length, count = shared_prefix(workload)
    return SharedPrefixes(vocabulary=vocabulary, length=length, count=count, seed=seed)


@dataclass(frozen=True, slots=True)
class ClippedPrompts:
    """Prompts shortened to the context of the model: first the output, to leave one token, then the prompt."""

    source: PromptSource
    max_model_len: int

    def prompts(self) -> Iterator[Prompt]:
        """Return the prompts of the source; shortened ones are marked as `clipped`."""
        return (clipped(prompt, self.max_model_len) for prompt in self.source.prompts())


def clipped(prompt: Prompt, max_model_len: int) -> Prompt:
    """Return the prompt, or the part of it that fits; a text is cut in proportion to its tokens."""
    if prompt.input_tokens + prompt.output_tokens <= max_model_len:
        return prompt
    output = max(1, min(prompt.output_tokens, max_model_len - 1))
    left = max(1, min(prompt.input_tokens, max_model_len - output))
    return dataclasses.replace(
        prompt,
        text=prompt.text[: len(prompt.text) * left // prompt.input_tokens],
        token_ids=None if prompt.token_ids is None else prompt.token_ids[:left],
        input_tokens=left,
        output_tokens=output,
        counted=False,
        clipped=True,
    )


def arrivals_of(workload: WorkloadConfig, dataset: SharedDataset | None = None) -> StageArrivals:
    """Arrival processes of a workload; those of a trace continue from stage to stage, like the prompts.

    `dataset` is the workload's file, which its prompts read too; None: a new one.
    """
    spec = parse_arrivals(workload.arrivals)
    if spec.name != "trace":
        return lambda draws: seeded_arrivals(burstiness=workload.burstiness, seed=draws.arrivals, spec=spec)
    from servetop.workload.arrivals.trace_arrivals import TraceTimes
    from servetop.workload.datasets.shared_dataset import SharedDataset

    shared = dataset or SharedDataset(workload)

    @functools.lru_cache(maxsize=1)
    def times(stream: Stream) -> TraceTimes:
        trace = shared.trace(stream[0][0])
        rows = None if trace is None else shared.rows(trace)
        return TraceTimes(trace, rows=rows, rate=workload.trace_rate)

    times(StageDraws(arrivals=()).stream)  # refuses a workload without times at once
    return lambda draws: times(draws.stream).at_rate
