"""Evidence of a search from plain figures: a load, for how long, how many missed, and how long requests took."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from servetop.run.search.search_evidence import Evidence, Probe, Purpose


class Kept(NamedTuple):
    """A load that was kept, with evenly spaced requests; the first of each `1 / missed` missed the limit."""

    load: float
    seconds: float
    missed: float = 0.0
    latency: float = 0.5
    growth: float = 0.0
    """Seconds by which each request takes longer for each second of the probe."""
    purpose: Purpose = Purpose.MEASURE


def evidence_of(*kept: Kept) -> Evidence:
    """The probes one after the other, from time 0."""
    probes, due, done, missed = [], [], [], []
    begin = 0.0
    for load, seconds, share, latency, growth, purpose in kept:
        probes.append(Probe(load=load, begin=begin, end=begin + seconds, purpose=purpose))
        times = np.arange(round(load * seconds)) / load
        due.append(begin + times)
        done.append(begin + times + latency + growth * times)
        missed.append(np.floor((np.arange(times.size) + 1) * share) > np.floor(np.arange(times.size) * share))
        begin += seconds
    ends = np.concatenate(done)
    ends[ends > begin] = np.nan
    counted = np.ones(ends.size)
    return Evidence(
        probes=tuple(probes),
        due=np.concatenate(due),
        done=ends,
        counted=(counted,),
        missed=(np.concatenate(missed).astype(np.float64),),
    )
