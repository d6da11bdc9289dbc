"""Several served models, such as a base model and its LoRA adapters, asked for by weight."""

from __future__ import annotations

import dataclasses
import itertools
import math
from bisect import bisect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from servetop.core.config import WorkloadConfig
from servetop.core.errors import UsageError
from servetop.core.interfaces.dialect import Prompt
from servetop.workload.prompts.prompt_source import PromptSource

_STREAM = 0x10A
_MOST_SHOWN = 12


@dataclass(frozen=True, slots=True)
class MixedModels:
    """Prompts of a source, each for a model drawn by weight; what is asked stays the same as without a mix."""

    source: PromptSource
    mix: Mapping[str, float]
    seed: Sequence[int]

    def prompts(self) -> Iterator[Prompt]:
        """See PromptSource."""
        generator = np.random.default_rng((*self.seed, _STREAM))
        names = [name for name, weight in self.mix.items() if weight > 0]
        bounds = list(itertools.accumulate(self.mix[name] for name in names))
        for prompt in self.source.prompts():
            pick = bisect(bounds, generator.random() * bounds[-1], hi=len(bounds) - 1)
            yield dataclasses.replace(prompt, model=names[pick])


def parse_model_mix(text: str) -> dict[str, float]:
    """Weights by name from `base=3,adapter-a=1`; a name alone weighs 1."""
    mix: dict[str, float] = {}
    for part in text.split(","):
        name, equals, weight = part.strip().rpartition("=")
        name = name if equals else weight
        try:
            mix[name] = float(weight) if equals else 1.0
        except ValueError:
            raise UsageError(f"--model-mix {part.strip()}: give NAME=WEIGHT, as in base=3,adapter-a=1") from None
    return mix


def check_mix(workload: WorkloadConfig) -> None:
    """UsageError for weights that are none, and for a mix that something else overrides."""
    mix = workload.model_mix
    if not mix:
        return
    wrong = next((name for name, weight in mix.items() if not name or not (0 <= weight < math.inf)), None)
    if wrong is not None:
        raise UsageError(f"--model-mix {wrong}={mix[wrong]:g}: give the name of a model, and a weight from 0")
    if not sum(mix.values()):
        raise UsageError("--model-mix: all weights are 0: give one above it")
    if "model" in workload.extra_body:
        raise UsageError("--extra-body names a model, and --model-mix others: give one of the two")


def check_served(mix: Mapping[str, float], served: Sequence[str]) -> None:
    """UsageError for a model of the mix that the server does not list; one that lists none is believed."""
    missing = [name for name in mix if name not in served]
    if missing and served:
        more = f" and {len(served) - _MOST_SHOWN} more" if len(served) > _MOST_SHOWN else ""
        names = ", ".join(served[:_MOST_SHOWN])
        raise UsageError(f"--model-mix: the server does not serve {', '.join(missing)}: it serves {names}{more}")
