"""What a run is doing at one instant, in one word."""

from __future__ import annotations

from enum import StrEnum


class RunPhase(StrEnum):
    """The phases of a run, in their usual order."""

    BOOTING = "booting"
    """The engine is being started or attached to."""
    RUNNING = "running"
    """The load is being played."""
    RESTARTING = "restarting"
    """The engine gets another batch size."""
    DRAINING = "draining"
    """Nothing more is sent; requests in flight finish."""
    STOPPING = "stopping"
    """The engine is being stopped and the recording closed."""
