"""How a run is executed, besides its configuration: what its recording does not have."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """How a run is executed; a run in another process receives it with its setup."""

    resume: bool = False
    """Continue the recording."""
    throw_away: bool = False
    """Remove the folder of the recording at the end."""
    metrics: socket.socket | None = None
    """Listens at the port at which the run serves its metrics; None: it does not serve them."""
    otlp: str = ""
    """Where the metrics are pushed; empty: nowhere."""
    on_finish: tuple[str, ...] = ()
    """The words of a command to run when the recording is closed; empty: none."""

    @property
    def inherited(self) -> tuple[int, ...]:
        """The file descriptors that the run process needs."""
        return () if self.metrics is None else (self.metrics.fileno(),)

    @property
    def setup(self) -> Mapping[str, Any]:
        """What the run process reads from its setup, as data."""
        return {
            "metrics": None if self.metrics is None else self.metrics.fileno(),
            "otlp": self.otlp,
            "on_finish": list(self.on_finish),
        }

    @classmethod
    def of_setup(cls, setup: Mapping[str, Any]) -> Execution:
        """Return what the setup of this process has; flags of its command line are not part of it."""
        number = setup["metrics"]
        metrics = None if number is None else socket.socket(fileno=number)
        if metrics is not None:
            metrics.set_inheritable(False)
            metrics.setblocking(False)
        return cls(metrics=metrics, otlp=setup["otlp"], on_finish=tuple(setup["on_finish"]))
