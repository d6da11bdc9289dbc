"""Tracks the fields of an engine's samples, to name each that vanishes once."""

from __future__ import annotations

from collections.abc import Sequence

from servetop.core.events import EngineSample
from servetop.engines.metrics.metrics_reader import GAUGES


class LostFields:
    """The fields that a sample of an engine had and that a later one lacks."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        """Fields that a sample had since the engine started."""
        self._named: set[str] = set()

    def start_again(self) -> None:
        """Forget which fields the engine had: a new one may have others."""
        self._seen = set()

    def update(self, samples: Sequence[EngineSample]) -> list[str]:
        """Take the next samples; return the fields that are missing or invalid for the first time, sorted."""
        lost: set[str] = set()
        for sample in samples:
            exported = {name for name in GAUGES if getattr(sample, name) is not None}
            lost |= self._seen - exported
            self._seen |= exported
        new = sorted(lost - self._named)
        self._named |= lost
        return new
