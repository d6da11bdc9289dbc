"""Whether the workload explains the hit rate of the prefix cache, and whether the cache held what was promised."""

from __future__ import annotations

import math
from dataclasses import dataclass

from servetop.core.config import AS_IS

TOLERANCE = 0.02
"""Difference between counted and ideal hit rate that needs an explanation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheCheck:
    """The hit rate as the engine counts it beside that of an infinite cache; NaN if unknown."""

    hit_rate: float = math.nan
    at_least: float = math.nan
    """Lower bound on an unknown hit rate, from the times to first token by position of the prefix."""
    ideal: float = math.nan
    promised: str = AS_IS
    """State in which the cache began: `as-is`, `cold` or `warm`."""
    slack: float = 0.0
    """Part of the prompts about which the ideal is uncertain, as where texts and templates do not end with a block."""

    @property
    def exceeds(self) -> bool:
        """Whether more was found than a cache can have that began in this state; False if unknown."""
        return self.hit_rate > self.ideal + self._limit

    @property
    def _limit(self) -> float:
        return max(TOLERANCE, self.slack)

    @property
    def reason(self) -> str:
        """One phrase if the two differ by more than the tolerance; empty if not.

        Fewer hits than the ideal are what a small cache does, and are wrong only if its state was promised.
        """
        if self.exceeds:
            held = "of an earlier run" if self.promised == AS_IS else "that it should not have"
            return (
                f"prefix cache hit rate {self.hit_rate:.2f}, but this workload explains at most {self.ideal:.2f}: "
                f"the cache held prompts {held}"
            )
        if self.promised != AS_IS and self.hit_rate < self.ideal - self._limit:
            return (
                f"prefix cache hit rate {self.hit_rate:.2f} of the ideal {self.ideal:.2f}: "
                "prefixes were evicted or not cached"
            )
        return ""
