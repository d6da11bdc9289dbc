"""The figures of one stage to which the rules are applied."""

from __future__ import annotations

from dataclasses import dataclass

from servetop.analysis.summary.summary_types import Measurements, SteadySummary


@dataclass(frozen=True, slots=True, kw_only=True)
class StageFigures:
    """One stage with load, except warm-ups."""

    stage: int
    """Number of the stage, as in the summary."""
    label: str
    measured: Measurements
    steady: SteadySummary
    generating: float | None = None
    """Mean number of requests that wait for their next token: gaps between tokens per second × mean gap."""
    in_flight: float | None = None
    """Mean number of requests in flight over the same time, by the request rows."""

    @property
    def compared(self) -> Measurements:
        """The measurements of the steady window, or of the whole stage without one."""
        return self.measured if self.steady.measured is None else self.steady.measured
