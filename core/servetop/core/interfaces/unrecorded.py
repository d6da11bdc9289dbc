"""What a run measured and could not record."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Unrecorded:
    """Measured data that is not in the recording."""

    ticks: int
    requests: int
    reason: str

    def __str__(self) -> str:
        return f"{self.ticks:,} ticks, {self.requests:,} requests not recorded: {self.reason}"
