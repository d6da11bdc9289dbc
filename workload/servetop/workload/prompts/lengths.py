"""How long prompts and answers are: pure, seeded streams of token counts (`--lengths`)."""

from __future__ import annotations

import functools
import itertools
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from servetop.core.arrays import IntArray
from servetop.core.config import WorkloadConfig
from servetop.core.errors import UsageError
from servetop.workload.distribution_spec import DistributionSpec, KnownDistributions, SpecParameter, parse_distribution

_BLOCK = 256
_MEAN = SpecParameter(high=1e6)
_CAP = SpecParameter(1e6, low=1, high=1e6, low_included=True)
_CAPS = {"input_cap": _CAP, "output_cap": _CAP}
_SHORTEST, _SUBSET_CAP = 4, 2048
"""Tokens of ShareGPT's pairs: the filter of vLLM's benchmark, and of the Run:ai study."""
_COUNT = SpecParameter(low=1, high=1e6, low_included=True)
_ZIPF_CAP = SpecParameter(low=1, high=200_000, low_included=True)
LENGTH_DISTRIBUTIONS: KnownDistributions = {
    "fixed": {"input": _MEAN, "output": _MEAN},
    "uniform": {"ratio": SpecParameter(high=0.999)},
    "normal": {
        "input_mean": _MEAN,
        "input_std": _MEAN,
        "input_max": _COUNT,
        "output_mean": _MEAN,
        "output_std": _MEAN,
        **_CAPS,
    },
    "lognormal": {
        "input_mean": _MEAN,
        "input_sigma": SpecParameter(1.0, high=5),
        "output_mean": _MEAN,
        "output_sigma": SpecParameter(1.0, high=5),
        **_CAPS,
    },
    "capped-exponential": {"output_mean": _MEAN, "output_cap": _CAP},
    "zipf": {"exponent": SpecParameter(1.1, high=10), "input_cap": _ZIPF_CAP, "output_cap": _ZIPF_CAP},
    "sharegpt": {
        "input_cap": SpecParameter(1024, high=1e6),
        "output_cap": _CAP,
        "total_cap": SpecParameter(2048, high=2e6),
        "subset": _COUNT,
        "sample": _COUNT,
        "output_mean": _MEAN,
        "output_spread": SpecParameter(1.0, high=10),
        "output_limit": _COUNT,
    },
}
"""Means that are not given are `input_len` and `output_len`; every length is at least one token."""
_NARROW = 0.25
"""Standard deviation of normal lengths as a share of their mean, where none is given."""

LengthPair = tuple[int, int]
"""Tokens of a prompt and of its answer."""
Draw = Callable[[np.random.Generator, int], IntArray]
"""So many lengths of one kind."""


@dataclass(frozen=True, slots=True)
class LengthSource:
    """Lengths of prompts and answers drawn independently; two iterators give the same pairs."""

    inputs: Draw
    outputs: Draw
    seed: tuple[int, ...]

    def pairs(self) -> Iterator[LengthPair]:
        """Without end, at least one token each."""
        generator = np.random.default_rng(self.seed)
        while True:
            inputs = np.maximum(1, self.inputs(generator, _BLOCK))
            outputs = np.maximum(1, self.outputs(generator, _BLOCK))
            yield from zip(inputs.tolist(), outputs.tolist(), strict=True)


@dataclass(frozen=True, slots=True)
class EmpiricalLengths:
    """Pairs drawn with replacement from observed ones, so that a completion keeps the length that fits its prompt."""

    observed: IntArray
    """Shape (pairs, 2)."""
    seed: tuple[int, ...]

    def pairs(self) -> Iterator[LengthPair]:
        """Without end."""
        generator = np.random.default_rng(self.seed)
        while True:
            picks = generator.integers(0, len(self.observed), size=_BLOCK)
            yield from ((int(prompt), int(output)) for prompt, output in self.observed[picks])


@dataclass(frozen=True, slots=True)
class RepeatedLengths:
    """A fixed sample of pairs, in order, over and over."""

    sample: tuple[LengthPair, ...]

    def pairs(self) -> Iterator[LengthPair]:
        """Without end."""
        return itertools.cycle(self.sample)


@dataclass(frozen=True, slots=True)
class LimitedLengths:
    """Prompts of a source, each with the same limit on output tokens: the model decides when a completion ends."""

    source: EmpiricalLengths | RepeatedLengths
    output_limit: int

    def pairs(self) -> Iterator[LengthPair]:
        """Without end."""
        return ((prompt, self.output_limit) for prompt, _ in self.source.pairs())


Lengths = LengthSource | EmpiricalLengths | RepeatedLengths | LimitedLengths


def parse_lengths(workload: WorkloadConfig) -> DistributionSpec:
    """The law that a workload names: fixed when it names none, or uniform when it gives a range ratio."""
    text = workload.lengths
    ratio = workload.range_ratio
    if not 0 <= ratio < 1:
        raise UsageError(f"--random-range-ratio {ratio:g}: give a share from 0 to below 1")
    if ratio and not text:
        return DistributionSpec("uniform", {"ratio": ratio})
    if ratio and text.partition(":")[0] != "uniform":
        raise UsageError(f"--random-range-ratio is for uniform lengths: leave it out with --lengths {text}")
    return parse_distribution(text or "fixed", LENGTH_DISTRIBUTIONS, option="--lengths")


def lengths_for(workload: WorkloadConfig, seed: Sequence[int]) -> Lengths:
    """The prompt and output tokens that requests ask for."""
    source, limit = expected_lengths(workload, seed), output_limit(workload)
    if limit is None or isinstance(source, LengthSource | LimitedLengths):
        return source
    if workload.ignore_eos:
        raise UsageError("--lengths: output_limit lets the model end its completions: give --no-ignore-eos too")
    return LimitedLengths(source, limit)


def output_limit(workload: WorkloadConfig) -> int | None:
    """Output tokens that every request allows (`max_tokens`); None: as many as it expects."""
    law = parse_lengths(workload)
    limit = law.or_else("output_limit", 0) if "output_limit" in law.numbers else 0
    return int(limit) or None


def expected_lengths(workload: WorkloadConfig, seed: Sequence[int]) -> Lengths:
    """Prompt and output tokens as a prediction expects them: below `output_limit` where the model stops earlier."""
    law, stream = parse_lengths(workload), (*seed, 0x1E46)
    if law.name == "sharegpt":
        return _sharegpt(law, stream)
    inputs, outputs = (_draw(law, side, mean) for side, mean in _means(law, workload).items())
    return LengthSource(inputs, outputs, stream)


def _sharegpt(law: DistributionSpec, seed: tuple[int, ...]) -> EmpiricalLengths | RepeatedLengths:
    caps = {key: law[key] for key in ("input_cap", "output_cap", "total_cap")}
    observed = sharegpt_lengths(**caps, subset=int(law.or_else("subset", 0)))
    sample = int(law.or_else("sample", 0))
    if sample:
        source = random.Random(seed[0])
        observed = observed[[source.choice(range(len(observed))) for _ in range(sample)]]
    if mean := law.or_else("output_mean", 0.0):
        observed = _scaled(observed, mean, spread=law["output_spread"], cap=int(law["output_cap"]))
    if not sample:
        return EmpiricalLengths(observed, seed)
    return RepeatedLengths(tuple((int(prompt), int(output)) for prompt, output in observed))


def _scaled(pairs: IntArray, mean: float, *, spread: float, cap: int) -> IntArray:
    """The pairs with outputs raised to `spread`, multiplied so that their mean is `mean`, and kept within 1..cap."""
    raised = pairs[:, 1].astype(np.float64) ** spread
    outputs = np.rint(raised * (mean * len(raised) / raised.sum())).astype(np.int64)
    return np.stack((pairs[:, 0], np.clip(outputs, 1, cap)), axis=1)


def _means(law: DistributionSpec, workload: WorkloadConfig) -> Mapping[str, float]:
    """By side, as the law says, else as the workload does."""
    plain = {"input": workload.input_len, "output": workload.output_len}
    keys = {side: side if law.name == "fixed" else f"{side}_mean" for side in plain}
    return {side: law.or_else(keys[side], mean) if keys[side] in law.numbers else mean for side, mean in plain.items()}


def _draw(law: DistributionSpec, side: str, mean: float) -> Draw:
    match law.name:
        case "uniform":
            return _uniform(mean, law.or_else("ratio", 0.5))
        case "normal" if side == "input" and law.or_else("input_max", 0):
            return _up_to(int(law["input_max"]))
        case "normal":
            return _capped(_normal(mean, law.or_else(f"{side}_std", _NARROW * mean)), law[f"{side}_cap"])
        case "lognormal":
            return _capped(_lognormal(mean, law[f"{side}_sigma"]), law[f"{side}_cap"])
        case "capped-exponential" if side == "output":
            return _exponential(mean, law["output_cap"])
        case "zipf":
            return _zipf(law["exponent"], int(law.or_else(f"{side}_cap", 4 * mean)))
        case _:
            return lambda _, count: np.full(count, round(mean))


def _uniform(mean: float, ratio: float) -> Draw:
    """Whole numbers from mean · (1 - ratio) to mean · (1 + ratio), both included, as vLLM draws them."""
    low, high = max(1, math.floor(mean * (1 - ratio))), max(1, math.ceil(mean * (1 + ratio)))
    return lambda generator, count: generator.integers(low, high, size=count, endpoint=True)


def _up_to(most: int) -> Draw:
    return lambda generator, count: generator.integers(1, most, size=count, endpoint=True)


def _normal(mean: float, std: float) -> Draw:
    return lambda generator, count: np.rint(generator.normal(mean, std, count)).astype(np.int64)


def _lognormal(mean: float, sigma: float) -> Draw:
    """With that mean: mu = ln(mean) - sigma² / 2."""
    mu = math.log(mean) - sigma**2 / 2
    return lambda generator, count: np.rint(np.minimum(generator.lognormal(mu, sigma, count), 1e7)).astype(np.int64)


def _capped(draw: Draw, cap: float) -> Draw:
    return lambda generator, count: np.minimum(draw(generator, count), int(cap))


def _exponential(mean: float, cap: float) -> Draw:
    """What is above the cap is drawn again, as in Anyscale's study: the mean gets smaller, no length piles up."""
    # the distribution below the cap is a uniform share of the whole one's lower part: one draw, no loop
    most = -math.expm1(-(cap + 0.5) / mean)
    return lambda generator, count: np.rint(-mean * np.log1p(-most * generator.random(count))).astype(np.int64)


def _zipf(exponent: float, cap: int) -> Draw:
    """P(k) ∝ k^-exponent for k in 1 … cap."""
    weights = np.arange(1, max(1, cap) + 1, dtype=np.float64) ** -exponent
    shares = np.cumsum(weights) / weights.sum()

    def draw(generator: np.random.Generator, count: int) -> IntArray:
        ranks: IntArray = np.searchsorted(shares, generator.random(count)).astype(np.int64)
        return ranks + 1

    return draw


def sharegpt_lengths(*, input_cap: float, output_cap: float, total_cap: float, subset: int = 0) -> IntArray:
    """Pairs of ShareGPT's first turns, filtered as vLLM's benchmark does: 4 tokens or more, and within the caps.

    `subset` draws that many, always the same ones, of the pairs of 4 to 2048 tokens each before the caps apply; 0: all.
    """
    pairs = _all_sharegpt_lengths()
    pairs = pairs[(pairs >= _SHORTEST).all(axis=1)]
    if subset:
        usual = pairs[(pairs <= _SUBSET_CAP).all(axis=1)]
        if subset > len(usual):
            raise UsageError(f"--lengths sharegpt: subset={subset}: give {len(usual)} or less")
        pairs = usual[random.Random(0).sample(range(len(usual)), subset)]
    within = (pairs[:, 0] <= input_cap) & (pairs[:, 1] <= output_cap) & (pairs.sum(axis=1) <= total_cap)
    kept: IntArray = pairs[within]
    if not len(kept):
        raise UsageError("--lengths sharegpt: no pair is within input_cap, output_cap and total_cap: raise them")
    return kept


@functools.cache
def _all_sharegpt_lengths() -> IntArray:
    from servetop.workload.datasets.files import shipped, table_rows

    rows = table_rows(shipped("sharegpt_lengths.csv.gz"))
    return np.array([(int(row["input"]), int(row["output"])) for _, row in rows], dtype=np.int64)
