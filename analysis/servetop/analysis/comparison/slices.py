"""Divides the window of a stage into slices of equally many consecutive requests.

With equal seeds, slice i of one run holds the same requests as slice i of the other (common random numbers), also in a
closed loop, where the times of the requests depend on the engine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from servetop.analysis.comparison.stage_sample import StageSample
from servetop.analysis.statistics.batch_means import MIN_OBSERVATIONS, SERIES
from servetop.core.arrays import BoolArray, FloatArray, IntArray

MIN_PER_SLICE = 2
_MAX_MISMATCH = 0.01
"""Fraction of the requests with other lengths from which on two runs did not send the same requests."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SlicedStage:
    """The requests of a stage to compare, and the slice of each."""

    sample: StageSample
    chosen: IntArray
    """Positions of the requests in the sample; shape (n,)."""
    slice_of: IntArray
    """Slice of each chosen request, ascending; shape (n,)."""
    edges: FloatArray
    """Run times between the slices; shape (slices + 1,)."""

    @property
    def count(self) -> int:
        """Number of slices."""
        return self.edges.size - 1

    @property
    def seconds(self) -> FloatArray:
        """Length of each slice; shape (slices,)."""
        return np.diff(self.edges)

    def sums(self, values: FloatArray) -> FloatArray:
        """Sum the values of the chosen requests by slice, omitting NaN; shape (slices,)."""
        return np.bincount(self.slice_of, weights=np.nan_to_num(values), minlength=self.count).astype(np.float64)

    def counts(self, mask: BoolArray) -> FloatArray:
        """Count the chosen requests of a mask by slice; shape (slices,)."""
        return self.sums(mask.astype(np.float64))


def sliced(sample: StageSample) -> SlicedStage | None:
    """Divide the whole window; None with too few requests."""
    window = sample.window
    return _sliced(sample, np.arange(window.start, window.stop))


def sliced_pair(a: StageSample, b: StageSample) -> tuple[SlicedStage, SlicedStage] | None:
    """Divide the requests that both windows contain; None unless both runs sent the same requests.

    Equal requests have equal places in their stage, as in a sweep, or equal numbers in their runs.
    """
    if a.seed != b.seed:
        return None
    matched = _matched(a, b, a.place, b.place) or _matched(a, b, a.number, b.number)
    if matched is None:
        return None
    in_a, in_b = matched
    first, second = _sliced(a, in_a), _sliced(b, in_b)
    return None if first is None or second is None else (first, second)


def _matched(a: StageSample, b: StageSample, names_a: IntArray, names_b: IntArray) -> tuple[IntArray, IntArray] | None:
    """The positions of the requests with equal names in both windows; None if they are few, or of other lengths."""
    in_a, in_b = (np.arange(each.window.start, each.window.stop) for each in (a, b))
    _, at_a, at_b = np.intersect1d(names_a[in_a], names_b[in_b], assume_unique=True, return_indices=True)
    in_a, in_b = np.sort(in_a[at_a]), np.sort(in_b[at_b])
    if in_a.size < max(names_a[a.window].size, names_b[b.window].size) / 2:
        return None
    if not np.array_equal(names_a[in_a], names_b[in_b]) or not _same_lengths(a, b, in_a, in_b):
        return None
    return in_a, in_b


def _same_lengths(a: StageSample, b: StageSample, in_a: IntArray, in_b: IntArray) -> bool:
    both = a.ok[in_a] & b.ok[in_b]
    differ = (a.prompt_tokens[in_a] != b.prompt_tokens[in_b]) | (a.output_tokens[in_a] != b.output_tokens[in_b])
    return bool((differ & both).sum() <= _MAX_MISMATCH * max(int(both.sum()), 1))


def _sliced(sample: StageSample, chosen: IntArray) -> SlicedStage | None:
    wave = _wave(sample, chosen.size)
    chosen = chosen[: chosen.size // wave * wave]
    count = next((each for each in SERIES if chosen.size >= each * max(wave, MIN_PER_SLICE)), None)
    if count is None:
        return None
    bounds = np.linspace(0, chosen.size // wave, count + 1).round().astype(np.int64) * wave
    starts = sample.due[chosen[bounds[:-1]]]
    edges = np.append(starts, _end(sample, int(chosen[-1])))
    if not (np.diff(edges) > 0).all():  # requests that were due at once: slices of equal time
        edges = np.linspace(sample.start, sample.until, count + 1)
    slice_of = np.repeat(np.arange(count), np.diff(bounds))
    return SlicedStage(sample=sample, chosen=chosen, slice_of=slice_of, edges=edges)


def _wave(sample: StageSample, requests: int) -> int:
    """Return the requests that a closed loop sends together, of which slices hold whole numbers; 1 for other loads.

    Requests of similar length start and end in waves. Slices that cut them at different places would differ in
    throughput for no other reason, and so would two windows.
    """
    users = sample.load.max_concurrency
    closed = users is not None and math.isinf(sample.load.request_rate)
    return users if users is not None and closed and requests >= MIN_OBSERVATIONS * users else 1


def _end(sample: StageSample, last: int) -> float:
    """Return the due time of the request after the last chosen one, or the end of the window."""
    following = sample.due[last + 1] if last + 1 < sample.due.size else sample.until
    return float(min(following, sample.until)) if following > sample.due[last] else sample.until
