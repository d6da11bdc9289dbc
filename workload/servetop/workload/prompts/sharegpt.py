"""Prompt and completion lengths of ShareGPT's first turns (`--lengths sharegpt`; data/README.md)."""

from __future__ import annotations

import functools
import random

import numpy as np

from servetop.core.arrays import IntArray
from servetop.core.errors import UsageError
from servetop.workload.distribution_spec import DistributionSpec, SpecParameter
from servetop.workload.prompts.length_sources import EmpiricalLengths, LengthSource, RepeatedLengths

_SHORTEST, _SUBSET_CAP = 4, 2048
"""Tokens of the pairs that vLLM's benchmark keeps at least, and that the Run:ai study kept at most."""
_COUNT = SpecParameter(low=1, high=1e6, low_included=True)
SHAREGPT_PARAMETERS = {
    "input_cap": SpecParameter(1024, high=1e6),
    "output_cap": SpecParameter(1e6, low=1, high=1e6, low_included=True),
    "total_cap": SpecParameter(2048, high=2e6),
    "subset": _COUNT,
    "sample": _COUNT,
    "output_mean": SpecParameter(high=1e6),
    "output_spread": SpecParameter(1.0, high=10),
    "output_limit": _COUNT,
}
"""docs/workloads.md describes them."""


def sharegpt_source(spec: DistributionSpec, seed: tuple[int, ...]) -> LengthSource:
    """Return the lengths that a spec describes, apart from its `output_limit`."""
    caps = {key: spec[key] for key in ("input_cap", "output_cap", "total_cap")}
    pairs = sharegpt_lengths(**caps, subset=int(spec.get("subset", 0)))
    sample = int(spec.get("sample", 0))
    if sample:
        source = random.Random(seed[0])
        pairs = pairs[[source.choice(range(len(pairs))) for _ in range(sample)]]
    if mean := spec.get("output_mean", 0.0):
        pairs = _scaled(pairs, mean, spread=spec["output_spread"], cap=int(spec["output_cap"]))
    if not sample:
        return EmpiricalLengths(pairs, seed)
    return RepeatedLengths(tuple((int(prompt), int(output)) for prompt, output in pairs))


def sharegpt_lengths(*, input_cap: float, output_cap: float, total_cap: float, subset: int = 0) -> IntArray:
    """Pairs of at least 4 tokens each and within the caps, shape (pairs, 2).

    `subset` takes that many, always the same ones, of the pairs of 4 to 2048 tokens each before the caps apply; 0 takes
    all pairs.
    """
    pairs = _subset(subset) if subset else _long_enough()
    within = (pairs[:, 0] <= input_cap) & (pairs[:, 1] <= output_cap) & (pairs.sum(axis=1) <= total_cap)
    kept: IntArray = pairs[within]
    if not len(kept):
        raise UsageError("--lengths sharegpt: no pair is within input_cap, output_cap and total_cap: raise them")
    return kept


@functools.lru_cache(maxsize=2)
def _subset(count: int) -> IntArray:
    """Return that many pairs of 4 to 2048 tokens each, always the same ones; UsageError if there are fewer."""
    pairs = _long_enough()
    usual = pairs[(pairs <= _SUBSET_CAP).all(axis=1)]
    if count > len(usual):
        raise UsageError(f"--lengths sharegpt: subset={count}: give {len(usual)} or less")
    found: IntArray = usual[random.Random(0).sample(range(len(usual)), count)]
    return found


@functools.cache
def _long_enough() -> IntArray:
    """Return all pairs of at least 4 tokens each."""
    pairs = _all_pairs()
    found: IntArray = pairs[(pairs >= _SHORTEST).all(axis=1)]
    return found


def _scaled(pairs: IntArray, mean: float, *, spread: float, cap: int) -> IntArray:
    """Return the pairs with outputs raised to the power `spread`, scaled to a mean, and limited to 1..cap."""
    raised = pairs[:, 1].astype(np.float64) ** spread
    outputs = np.rint(raised * (mean * len(raised) / raised.sum())).astype(np.int64)
    return np.stack((pairs[:, 0], np.clip(outputs, 1, cap)), axis=1)


@functools.cache
def _all_pairs() -> IntArray:
    from servetop.workload.datasets.files import shipped  # not at the start of every run
    from servetop.workload.datasets.tables import table_rows

    rows = (row for _, row in table_rows(shipped("sharegpt_lengths.csv.gz")) if isinstance(row, dict))
    return np.array([(int(row["input"] or 0), int(row["output"] or 0)) for row in rows], dtype=np.int64)
