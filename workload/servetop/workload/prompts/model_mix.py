"""Requests for several served models, such as a base model and its LoRA adapters, by weight."""

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
    """Prompts of a source, each for a model drawn by weight; the prompts are those without a mix."""

    source: PromptSource
    mix: Mapping[str, float]
    seed: Sequence[int]

    def prompts(self) -> Iterator[Prompt]:
        generator = np.random.default_rng((*self.seed, _STREAM))
        names = [name for name, weight in self.mix.items() if weight > 0]
        bounds = list(itertools.accumulate(self.mix[name] for name in names))
        for prompt in self.source.prompts():
            pick = bisect(bounds, generator.random() * bounds[-1], hi=len(bounds) - 1)
            yield dataclasses.replace(prompt, model=names[pick])


def parse_model_mix(text: str) -> dict[str, float]:
    """Weights by name from `base=3,adapter-a=1`; the default weight is 1."""
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
    """Raise UsageError for invalid weights, and for a mix that `--extra-body` overrides."""
    mix = workload.model_mix
    if not mix:
        return
    wrong = next((name for name, weight in mix.items() if not name or not (0 <= weight < math.inf)), None)
    if wrong is not None:
        raise UsageError(f"--model-mix {wrong}={mix[wrong]:g}: give a model name and a weight of at least 0")
    if not sum(mix.values()):
        raise UsageError("--model-mix: all weights are 0: give one above 0")
    if "model" in workload.extra_body:
        raise UsageError("--extra-body and --model-mix both name models: give one of the two")


def check_served(mix: Mapping[str, float], served: Sequence[str]) -> None:
    """Raise UsageError for a model that the server does not list; a server that lists none is not checked."""
    missing = [name for name in mix if name not in served]
    if missing and served:
        more = f" and {len(served) - _MOST_SHOWN} more" if len(served) > _MOST_SHOWN else ""
        names = ", ".join(served[:_MOST_SHOWN])
        raise UsageError(f"--model-mix: the server does not serve {', '.join(missing)}: it serves {names}{more}")
