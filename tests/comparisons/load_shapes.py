"""Loads whose amount varies much by chance, or over time: wide lengths, bursts, short runs, a rate like a sine."""

from __future__ import annotations

import dataclasses
from enum import StrEnum
from random import Random

from servetop.core.config import WorkloadConfig

WIDEST = 1.5
"""Largest σ of log-normal lengths."""


class LoadShape(StrEnum):
    """How an open load below saturation is drawn."""

    WIDE = "wide lengths"
    """Log-normal lengths with σ from 1, up to eight times the mean."""
    BURSTY = "bursty"
    """Gamma arrivals with burstiness 0.2 to 0.4."""
    SHORT = "short"
    """Runs of 20 s."""
    SINUSOID = "sinusoid"
    """A rate that goes up and down by half."""

    @property
    def seconds(self) -> float | None:
        """The length of its runs; None for that of other loads."""
        return 20.0 if self is LoadShape.SHORT else None

    @property
    def highest(self) -> float:
        """Largest rate, as a share of saturation; the crest of the sine stays below it, too."""
        return 0.6 if self is LoadShape.SINUSOID else 0.85


def shaped(workload: WorkloadConfig, shape: LoadShape, random: Random) -> WorkloadConfig:
    """Return a drawn workload with the lengths or arrivals of a shape."""
    plain = WorkloadConfig()
    poisson = dataclasses.replace(workload, arrivals=plain.arrivals, burstiness=1.0)
    match shape:
        case LoadShape.WIDE:
            sigma = random.uniform(1.0, WIDEST)
            caps = f"input_cap={min(8 * workload.input_len, 3000)},output_cap={min(8 * workload.output_len, 1000)}"
            lengths = f"lognormal:input_sigma={sigma:.2f},output_sigma={sigma:.2f},{caps}"
            return dataclasses.replace(poisson, range_ratio=plain.range_ratio, lengths=lengths)
        case LoadShape.BURSTY:
            return dataclasses.replace(poisson, burstiness=random.uniform(0.2, 0.4))
        case LoadShape.SINUSOID:
            period = random.choice((20, 40, 60))
            return dataclasses.replace(poisson, arrivals=f"sinusoid:period={period},amplitude=0.5")
        case LoadShape.SHORT:
            return workload
