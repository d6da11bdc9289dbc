"""What a result of another load generator contains, in servetop's terms."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from servetop.core.events import RequestRecord

MAX_SECONDS = 48 * 3600.0
"""Longest run that is imported; a time beyond it is in another unit or damaged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedLoad:
    """The load that the tool was to send."""

    request_rate: float = math.inf
    """Requests/s; inf as fast as the concurrency allows, also if the tool paced its requests otherwise."""
    max_concurrency: int | None = None
    burstiness: float = 1.0
    ramp_from: float | None = None
    """Rate at the beginning of a ramp, which ends with `request_rate`."""
    ramp_strategy: str = "linear"
    scheduled: bool = False
    """Whether the tool sent its requests at times of their own, although the file does not have their rate."""

    @property
    def is_limited(self) -> bool:
        """Whether a rate or a concurrency is known."""
        return math.isfinite(self.request_rate) or self.max_concurrency is not None

    def rate_after(self, progress: float) -> float:
        """Return the rate in requests/s when this share of the requests, 0 to 1, was due, as vLLM paces a ramp."""
        start, end = self.ramp_from, self.request_rate
        if start is None:
            return end
        if self.ramp_strategy == "exponential" and start > 0:
            return float(start * (end / start) ** progress)
        return start + (end - start) * progress


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ImportedResult:
    """One run of another load generator; of each request the times are seconds since the first one was due."""

    tool: str
    """The name of the tool as its makers spell it, as in `vLLM bench`."""
    version: str | None = None
    """Its version; None where the format has none."""
    requests: Sequence[RequestRecord]
    load: ImportedLoad
    backend: str
    """The API or engine that the tool was to measure, by its name there."""
    model: str = ""
    tokenizer: str = ""
    label: str = ""
    endpoint: str = "completions"
    """As `WorkloadConfig.endpoint`."""
    origin_ns: int = 0
    """The clock of the tool at second 0, in nanoseconds."""
    wall_epoch_s: float | None = None
    """Unix time of second 0; None if unknown."""
    times_known: bool = True
    """Whether the tool wrote when it sent each request; else the times are derived."""
    metadata: Mapping[str, str] = field(default_factory=dict)
    reported: Mapping[str, float] = field(default_factory=dict)
    """The means and throughputs that the tool itself wrote, as `reported_figures`."""
    not_carried: Sequence[str] = ()
    """What the file has and the recording has not: phrases of a message to the user."""
    remarks: Sequence[str] = ()
    """What was derived or is doubtful, a sentence each, without its period."""
