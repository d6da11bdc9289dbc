"""Finds the stages of two arms that are comparable: equal loads, and the parts of ramps with equal rates."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from servetop.analysis.cells.stage_load import StageLoad
from servetop.analysis.comparison.stage_sample import StageSample
from servetop.analysis.comparison.start_spread import SAME, StartSpread

_RAMP_PARTS = 6
_MIN_REQUESTS_OF_PART = 64


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ArmRun:
    """One recording of an arm."""

    name: str
    stages: Sequence[StageSample]
    start_spread: StartSpread = SAME
    """How much its engine is assumed to vary between starts."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AlignedStage:
    """Measurements under one load, with the name of their recording; none of an arm that has no such load."""

    load: StageLoad
    a: tuple[tuple[str, StageSample], ...]
    b: tuple[tuple[str, StageSample], ...]


def align(a: Sequence[ArmRun], b: Sequence[ArmRun]) -> list[AlignedStage]:
    """Align two arms by load; ramps over different ranges by the rates that they have in common.

    Loads of one arm only come last. The batch-size limit counts only if that leaves something to compare: it may be the
    change itself.
    """
    in_a, in_b = _by_load(a), _by_load(b)
    if not set(in_a) & set(in_b):
        in_a, in_b = ({_any_batch(load): units for load, units in each.items()} for each in (in_a, in_b))
    common = [load for load in in_a if load in in_b]
    pairs = [(load, in_a[load], in_b[load]) for load in common]
    left_a, left_b = ([load for load in each if load not in common] for each in (in_a, in_b))
    for first in list(left_a):
        second = next((each for each in left_b if _overlap(first, each)), None)
        if second is not None:
            pairs.append((first, in_a[first], in_b[second]))
            left_a.remove(first)
            left_b.remove(second)
    stages = [part for load, units_a, units_b in pairs for part in _parts(load, units_a, units_b)]
    stages += [AlignedStage(load=load, a=tuple(in_a[load]), b=()) for load in left_a]
    stages += [AlignedStage(load=load, a=(), b=tuple(in_b[load])) for load in left_b]
    return stages


_Units = list[tuple[str, StageSample]]


def _by_load(arm: Sequence[ArmRun]) -> dict[StageLoad, _Units]:
    units: dict[StageLoad, _Units] = {}
    for run in arm:
        for stage in run.stages:
            units.setdefault(stage.load, []).append((run.name, stage))
    return units


def _any_batch(load: StageLoad) -> StageLoad:
    return replace(load, max_num_seqs=None)


def _overlap(a: StageLoad, b: StageLoad) -> tuple[float, float] | None:
    """Return the rates that two ramps of one kind have in common, if they also have the same limits."""
    if a.ramp_from is None or b.ramp_from is None:
        return None
    if replace(a, ramp_from=0.0, request_rate=0.0) != replace(b, ramp_from=0.0, request_rate=0.0):
        return None
    rises = [each.request_rate > (each.ramp_from or 0.0) for each in (a, b)]
    low = max(min(each.ramp_from or 0.0, each.request_rate) for each in (a, b))
    high = min(max(each.ramp_from or 0.0, each.request_rate) for each in (a, b))
    return (low, high) if rises[0] == rises[1] and low < high else None


def _parts(load: StageLoad, a: _Units, b: _Units) -> list[AlignedStage]:
    """Return the whole stage, or the parts of a ramp, each over a range of rates."""
    ramps = [sample.load for _, sample in (*a, *b)]
    common = _overlap(ramps[0], ramps[-1])
    if common is None:
        return [AlignedStage(load=load, a=tuple(a), b=tuple(b))]
    fewest = min(sample.number[sample.window].size for _, sample in (*a, *b))
    count = max(1, min(_RAMP_PARTS, fewest // _MIN_REQUESTS_OF_PART))
    edges = np.linspace(*common, count + 1).tolist()
    if load.request_rate < (load.ramp_from or 0.0):
        edges.reverse()
    return [
        AlignedStage(
            load=replace(load, ramp_from=first, request_rate=last),
            a=tuple((name, _part(sample, first, last)) for name, sample in a),
            b=tuple((name, _part(sample, first, last)) for name, sample in b),
        )
        for first, last in itertools.pairwise(edges)
    ]


def _part(sample: StageSample, first: float, last: float) -> StageSample:
    """Return the part of a ramp from one rate to another."""
    start, until = (sample.start + sample.seconds * _progress(sample.load, rate) for rate in (first, last))
    load = replace(sample.load, ramp_from=first, request_rate=last)
    return replace(sample, load=load, start=start, until=until)


def _progress(load: StageLoad, rate: float) -> float:
    """Return the share of a ramp's time at which it reaches a rate."""
    start, end = load.ramp_from or 0.0, load.request_rate
    if load.ramp_strategy == "exponential":
        return math.log(rate / start) / math.log(end / start)
    return (rate - start) / (end - start)
