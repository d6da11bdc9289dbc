"""KV usage from an engine's gauges, the thresholds for it, and the age at which a sample is stale."""

from __future__ import annotations

import math

import numpy as np

from servetop.core.arrays import BoolArray, FloatArray
from servetop.core.events import EngineSample

KV_FULL = 0.95
"""KV usage from which the cache counts as full; engines keep a few per cent free (vLLM's watermark is 1 %)."""
KV_HIGH = 0.90
"""KV usage above which running requests soon cannot grow; advice on the batch size targets it."""
KV_ROOMY = 0.80
"""KV usage below which more sequences would fit without preemption."""
STALE_AFTER = 1.5
"""Age in seconds from which an engine sample is outdated; six samples should have arrived in that time."""


def kv_usage(sample: EngineSample | None) -> float:
    """Return the fraction of KV blocks in use, 0..1: as exported, else used / total blocks; NaN if unknown."""
    if sample is None:
        return math.nan
    if sample.kv_usage is None and sample.kv_blocks_used is not None and sample.kv_blocks_total:
        return sample.kv_blocks_used / sample.kv_blocks_total
    return math.nan if sample.kv_usage is None else float(sample.kv_usage)


def describe_before(times: FloatArray, starts: FloatArray, *, page_age: float) -> BoolArray:
    """Return a mask of the scrape times whose page may describe the time before its stage; `starts` are ascending."""
    if not page_age or not starts.size:
        return np.zeros(times.shape, dtype=np.bool_)
    last = np.searchsorted(starts, times, side="right") - 1
    return np.asarray((last < 0) | (times - starts[np.maximum(last, 0)] < page_age))


def kv_usages(usage: FloatArray, used: FloatArray, total: FloatArray) -> FloatArray:
    """Return the `kv_usage` of many samples, from three columns with NaN for values that are not exported."""
    return np.where(np.isnan(usage), used / np.where(total > 0, total, np.nan), usage)
