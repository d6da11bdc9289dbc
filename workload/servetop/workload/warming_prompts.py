"""The prompts that fill a prefix cache before a load: one for each prefix that the load's prompts share."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from servetop.core.config import RANDOM, WorkloadConfig
from servetop.core.errors import UsageError
from servetop.core.interfaces.dialect import Prompt
from servetop.workload.build import EngineTraits, hit_rate_prompts, shared_prefixes, vocabulary_of
from servetop.workload.datasets.catalogue import CORPORA, texts_of

_STREAM = 0x3A47


def check_warmable(workload: WorkloadConfig) -> None:
    """Raise UsageError for a workload without shared prefixes, which nothing can warm."""
    if workload.cache_hit_rate is not None:
        return
    if workload.dataset in CORPORA or (workload.dataset not in RANDOM and texts_of(workload) is not None):
        raise UsageError(f"--prefix-cache warm: servetop does not know what the prompts of {workload.dataset} share")
    if not workload.prefix_len and workload.dataset != "prefix_repetition":
        raise UsageError(
            "--prefix-cache warm: the prompts share no prefix: give --cache-hit-rate or --random-prefix-len"
        )


def warming_prompts(
    workload: WorkloadConfig,
    seed: Sequence[int],
    *,
    engine: EngineTraits,
    max_model_len: int | None = None,
) -> list[Prompt]:
    """Return one prompt for each shared prefix of a workload, with one more token and one token of output.

    With a mix of models, each model gets all of them.
    """
    vocabulary, drawn = vocabulary_of(workload, engine), tuple(seed)
    if workload.cache_hit_rate is not None:
        source = hit_rate_prompts(workload, drawn, vocabulary=vocabulary, block_size=engine.block_size)
        prefixes = source.prefixes()
    else:
        pool = shared_prefixes(workload, vocabulary, drawn)
        prefixes = [pool.prefix(number) for number in range(pool.count)] if pool.length else []
    longest = None if max_model_len is None else max_model_len - 2
    last = vocabulary.draw(np.random.default_rng((*drawn, _STREAM)), 1)
    prompts = [vocabulary.prompt([*prefix[:longest], *last], 1) for prefix in prefixes]
    models: list[str | None] = [name for name, weight in workload.model_mix.items() if weight > 0]
    return [dataclasses.replace(prompt, model=model) for prompt in prompts for model in models or [None]]
