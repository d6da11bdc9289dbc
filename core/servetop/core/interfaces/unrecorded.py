"""What a run measured and could not record."""

from __future__ import annotations

from dataclasses import dataclass

from servetop.core.text.counted import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Unrecorded:
    """Measured data that is not in the recording."""

    ticks: int
    requests: int
    reason: str

    def __str__(self) -> str:
        return f"{counted(self.ticks, 'tick')}, {counted(self.requests, 'request')} not recorded: {self.reason}"
