"""How long prompts and answers are: pure, seeded streams of token counts (`--lengths`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from servetop.core.arrays import IntArray
from servetop.core.config import WorkloadConfig
from servetop.core.errors import UsageError
from servetop.workload.distribution_spec import Forms, Setting, Spec, parse_spec

_BLOCK = 256
_MEAN = Setting(high=1e6)
_CAP = Setting(1e6, low=1, high=1e6, low_included=True)
_CAPS = {"input_cap": _CAP, "output_cap": _CAP}
_ZIPF_CAP = Setting(low=1, high=200_000, low_included=True)
LENGTH_LAWS: Forms = {
    "fixed": {"input": _MEAN, "output": _MEAN},
    "uniform": {"ratio": Setting(high=0.999)},
    "normal": {"input_mean": _MEAN, "input_std": _MEAN, "output_mean": _MEAN, "output_std": _MEAN, **_CAPS},
    "lognormal": {
        "input_mean": _MEAN,
        "input_sigma": Setting(1.0, high=5),
        "output_mean": _MEAN,
        "output_sigma": Setting(1.0, high=5),
        **_CAPS,
    },
    "capped-exponential": {"output_mean": _MEAN, "output_cap": _CAP},
    "zipf": {"exponent": Setting(1.1, high=10), "input_cap": _ZIPF_CAP, "output_cap": _ZIPF_CAP},
    "sharegpt": {"input_cap": Setting(1024, high=1e6), "total_cap": Setting(2048, high=2e6)},
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
    """Pairs drawn with replacement from observed ones, so that a prompt keeps its answer's length."""

    observed: IntArray
    """Shape (pairs, 2)."""
    seed: tuple[int, ...]

    def pairs(self) -> Iterator[LengthPair]:
        """Without end."""
        generator = np.random.default_rng(self.seed)
        while True:
            picks = generator.integers(0, len(self.observed), size=_BLOCK)
            yield from ((int(prompt), int(answer)) for prompt, answer in self.observed[picks])


def parse_lengths(workload: WorkloadConfig) -> Spec:
    """The law that a workload names: fixed when it names none, or uniform when it gives a range ratio."""
    text = workload.lengths
    ratio = workload.range_ratio
    if not 0 <= ratio < 1:
        raise UsageError(f"--random-range-ratio {ratio:g}: give a share from 0 to below 1")
    if ratio and not text:
        return Spec("uniform", {"ratio": ratio})
    if ratio and text.partition(":")[0] != "uniform":
        raise UsageError(f"--random-range-ratio is for uniform lengths: leave it out with --lengths {text}")
    return parse_spec(text or "fixed", LENGTH_LAWS, option="--lengths")


def lengths_for(workload: WorkloadConfig, seed: Sequence[int]) -> LengthSource | EmpiricalLengths:
    """The stream of lengths that a workload asks for."""
    law, stream = parse_lengths(workload), (*seed, 0x1E46)
    if law.name == "sharegpt":
        return EmpiricalLengths(sharegpt_lengths(input_cap=law["input_cap"], total_cap=law["total_cap"]), stream)
    inputs, outputs = (_draw(law, side, mean) for side, mean in _means(law, workload).items())
    return LengthSource(inputs, outputs, stream)


def _means(law: Spec, workload: WorkloadConfig) -> Mapping[str, float]:
    """By side, as the law says, else as the workload does."""
    plain = {"input": workload.input_len, "output": workload.output_len}
    keys = {side: side if law.name == "fixed" else f"{side}_mean" for side in plain}
    return {side: law.or_else(keys[side], mean) if keys[side] in law.numbers else mean for side, mean in plain.items()}


def _draw(law: Spec, side: str, mean: float) -> Draw:
    match law.name:
        case "uniform":
            return _uniform(mean, law.or_else("ratio", 0.5))
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


def sharegpt_lengths(*, input_cap: float, total_cap: float) -> IntArray:
    """Pairs of ShareGPT's first turns, filtered as vLLM's benchmark does: 4 tokens or more, and within the caps."""
    from servetop.workload.datasets.files import shipped, table_rows

    rows = table_rows(shipped("sharegpt_lengths.csv.gz"))
    pairs = np.array([(int(row["input"]), int(row["output"])) for _, row in rows], dtype=np.int64)
    fits = (pairs >= 4).all(axis=1) & (pairs[:, 0] <= input_cap) & (pairs.sum(axis=1) <= total_cap)
    if not fits.any():
        raise UsageError("--lengths sharegpt: no pair is within input_cap and total_cap: raise them")
    kept: IntArray = pairs[fits]
    return kept
