"""How to read an engine's gauges: KV usage, the thresholds it is compared with, and when a sample is stale."""

from __future__ import annotations

import math

import numpy as np

from servetop.core.arrays import FloatArray
from servetop.core.events import EngineSample

KV_FULL = 0.95
"""Share of KV blocks; engines keep a few per cent free for running requests to grow (vLLM's watermark is 1 %)."""
KV_HIGH = 0.90
"""Share above which running requests soon have no room to grow; also what advice on the batch size aims at."""
KV_ROOMY = 0.80
"""Share below which more sequences would fit without preempting."""
STALE_AFTER = 1.5
"""Seconds; an older engine sample does not describe the present (six should have arrived in that time)."""


def kv_usage(sample: EngineSample | None) -> float:
    """Share of KV blocks in use, 0..1: as exported, else used / total blocks; NaN where neither is known."""
    if sample is None:
        return math.nan
    if sample.kv_usage is None and sample.kv_blocks_used is not None and sample.kv_blocks_total:
        return sample.kv_blocks_used / sample.kv_blocks_total
    return math.nan if sample.kv_usage is None else float(sample.kv_usage)


def kv_usages(usage: FloatArray, used: FloatArray, total: FloatArray) -> FloatArray:
    """`kv_usage` of many samples, from the three columns; NaN is not exported."""
    return np.where(np.isnan(usage), used / np.where(total > 0, total, np.nan), usage)
