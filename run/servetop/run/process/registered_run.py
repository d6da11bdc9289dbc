"""The entry of one active run in the registry."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from servetop.recordings.format.liveness import Writer


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredRun:
    """One active run."""

    id: str
    """A few letters and digits, easy to type."""
    pid: int
    began: float
    """Unix time at which its process started; with the pid it identifies the process."""
    host: str
    engine: str
    model: str
    label: str
    recording: Path
    state: str
    """A RunPhase."""
    detached: bool = False
    """Whether it has no owner whose end would end it."""
    trouble: str = ""
    """Why its recording cannot be written at the moment; empty while it can."""

    @property
    def process(self) -> Writer:
        """The process of the run."""
        return Writer(pid=self.pid, started=self.began, host=self.host)
