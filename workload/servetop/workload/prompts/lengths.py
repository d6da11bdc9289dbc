"""Prompt and output lengths of a workload (`--lengths`): the distributions by name, and how each is drawn."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from servetop.core.arrays import IntArray
from servetop.core.config import WorkloadConfig
from servetop.core.errors import UsageError
from servetop.workload.distribution_spec import DistributionSpec, KnownDistributions, SpecParameter, parse_distribution
from servetop.workload.prompts.length_sources import Draw, IndependentLengths, LengthSource, LimitedLengths
from servetop.workload.prompts.sharegpt import SHAREGPT_PARAMETERS, sharegpt_source

_STREAM = 0x1E46
_MEAN = SpecParameter(high=1e6)
_CAP = SpecParameter(1e6, low=1, high=1e6, low_included=True)
_CAPS = {"input_cap": _CAP, "output_cap": _CAP}
_ZIPF_CAP = SpecParameter(low=1, high=200_000, low_included=True)
LENGTH_DISTRIBUTIONS: KnownDistributions = {
    "fixed": {"input": _MEAN, "output": _MEAN},
    "uniform": {"ratio": SpecParameter(high=0.999)},
    "normal": {
        "input_mean": _MEAN,
        "input_std": _MEAN,
        "input_max": SpecParameter(low=1, high=1e6, low_included=True),
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
    "sharegpt": SHAREGPT_PARAMETERS,
}
"""Means that are not given are `input_len` and `output_len`; every length is at least one token."""
_NARROW = 0.25
"""Default standard deviation of normal lengths, as a fraction of their mean."""


def parse_lengths(workload: WorkloadConfig) -> DistributionSpec:
    """Return the distribution of a workload's lengths: by default fixed, or uniform where a range ratio is given."""
    text = workload.lengths
    ratio = workload.range_ratio
    if not 0 <= ratio < 1:
        raise UsageError(f"--random-range-ratio {ratio:g}: give a fraction from 0 to below 1")
    if ratio and text.strip().rstrip(":") in ("", "uniform"):
        return DistributionSpec("uniform", {"ratio": ratio})
    if ratio and text.partition(":")[0] != "uniform":
        raise UsageError(f"--random-range-ratio is for uniform lengths: leave it out with --lengths {text}")
    return parse_distribution(text or "fixed", LENGTH_DISTRIBUTIONS, option="--lengths")


def lengths_for(workload: WorkloadConfig, seed: Sequence[int]) -> LengthSource:
    """Prompt tokens and output limits of the requests that a run sends."""
    source, limit = expected_lengths(workload, seed), output_limit(workload)
    if limit is None:
        return source
    if workload.ignore_eos:
        raise UsageError("--lengths: output_limit lets the model end its completions: give --no-ignore-eos too")
    return LimitedLengths(source, limit)


def output_limit(workload: WorkloadConfig) -> int | None:
    """Output tokens that every request allows; None: each request allows the tokens that it is expected to have."""
    return int(parse_lengths(workload).get("output_limit", 0)) or None


def expected_lengths(workload: WorkloadConfig, seed: Sequence[int]) -> LengthSource:
    """Prompt and output tokens that a prediction expects; outputs may be shorter than `output_limit`."""
    spec, stream = parse_lengths(workload), (*seed, _STREAM)
    if spec.name == "sharegpt":
        return sharegpt_source(spec, stream)
    inputs, outputs = (_draw(spec, side, mean) for side, mean in _means(spec, workload).items())
    return IndependentLengths(inputs, outputs, stream)


def _means(spec: DistributionSpec, workload: WorkloadConfig) -> Mapping[str, float]:
    """Mean lengths by side: those of the distribution, else those of the workload."""
    suffix = "" if spec.name == "fixed" else "_mean"
    plain = {"input": workload.input_len, "output": workload.output_len}
    return {side: spec.get(f"{side}{suffix}", mean) for side, mean in plain.items()}


def _draw(spec: DistributionSpec, side: str, mean: float) -> Draw:
    match spec.name:
        case "uniform":
            return _uniform(mean, spec.get("ratio", 0.5))
        case "normal" if side == "input" and (most := spec.get("input_max", 0)):
            return _up_to(int(most))
        case "normal":
            return _capped(_normal(mean, spec.get(f"{side}_std", _NARROW * mean)), spec[f"{side}_cap"])
        case "lognormal":
            return _capped(_lognormal(mean, spec[f"{side}_sigma"]), spec[f"{side}_cap"])
        case "capped-exponential" if side == "output":
            return _exponential(mean, spec["output_cap"])
        case "zipf":
            return _zipf(spec["exponent"], int(spec.get(f"{side}_cap", 4 * mean)))
        case _:
            return lambda _, count: np.full(count, round(mean))


def _uniform(mean: float, ratio: float) -> Draw:
    """Integers from mean · (1 - ratio) to mean · (1 + ratio), both included, as vLLM draws them."""
    low, high = max(1, math.floor(mean * (1 - ratio))), max(1, math.ceil(mean * (1 + ratio)))
    return lambda generator, count: generator.integers(low, high, size=count, endpoint=True)


def _up_to(most: int) -> Draw:
    return lambda generator, count: generator.integers(1, most, size=count, endpoint=True)


def _normal(mean: float, std: float) -> Draw:
    return lambda generator, count: np.rint(generator.normal(mean, std, count)).astype(np.int64)


def _lognormal(mean: float, sigma: float) -> Draw:
    """Log-normal with that mean: mu = ln(mean) - sigma² / 2."""
    mu = math.log(mean) - sigma**2 / 2
    return lambda generator, count: np.rint(np.minimum(generator.lognormal(mu, sigma, count), 1e7)).astype(np.int64)


def _capped(draw: Draw, cap: float) -> Draw:
    return lambda generator, count: np.minimum(draw(generator, count), int(cap))


def _exponential(mean: float, cap: float) -> Draw:
    """Exponential, drawn again above the cap as in Anyscale's study, so that no length is overrepresented."""
    # inverse transform restricted to the part below the cap: one draw instead of a rejection loop
    most = -math.expm1(-(cap + 0.5) / mean)
    return lambda generator, count: np.rint(-mean * np.log1p(-most * generator.random(count))).astype(np.int64)


def _zipf(exponent: float, cap: int) -> Draw:
    """P(k) ∝ k^-exponent for k in 1 … cap."""
    weights = np.arange(1, max(1, cap) + 1, dtype=np.float64) ** -exponent
    cumulative = np.cumsum(weights) / weights.sum()

    def draw(generator: np.random.Generator, count: int) -> IntArray:
        ranks: IntArray = np.searchsorted(cumulative, generator.random(count)).astype(np.int64)
        return ranks + 1

    return draw
