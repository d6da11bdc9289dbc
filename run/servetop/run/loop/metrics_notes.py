"""Notes on the metrics of one server: they cannot be read, are back, or have lost a value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from servetop.core.bounds import LARGEST_VALUE
from servetop.core.events import EngineSample, Note, Severity
from servetop.core.interfaces.sampled_values import has_values
from servetop.engines.engine import Engine
from servetop.engines.metrics.metrics_reader import GAUGES

MOST_REASONS = 3
"""Reasons that are noted of one outage of the metrics."""


class SampledServer(Protocol):
    """A server whose metrics are read."""

    @property
    def engine(self) -> Engine:
        """The engine that it runs."""
        ...

    @property
    def metrics_trouble(self) -> str | None:
        """Why its metrics cannot be read; None while they are."""
        ...

    @property
    def not_ready(self) -> str:
        """What its health page says if it takes no requests; empty if it is ready."""
        ...


class MetricsNotes:
    """Compares each reading with those before; each loss is noted once."""

    def __init__(self) -> None:
        self._reasons: list[str] = []
        """Why the metrics cannot be read, as far as that was noted; empty while they are read."""
        self._not_ready = ""
        """What its health page said when that was noted; empty while it is ready."""
        self._exported: set[str] = set()
        """Fields that a sample had since the engine started."""
        self._lost: set[str] = set()
        """Fields that were noted as lost."""

    def started(self) -> None:
        """The engine started again, and may export other fields."""
        self._exported = set()

    def of(self, server: SampledServer, samples: Sequence[EngineSample], *, at: float) -> list[Note]:
        """Return what there is to note at `at` seconds about new samples of a server."""
        texts = [*self._changed_trouble(server.metrics_trouble, samples)]
        if server.metrics_trouble is None and any(map(has_values, samples)):
            texts += self._changed_readiness(server.not_ready)
        if not server.engine.idle_metrics_vanish:
            texts += self._newly_lost(samples)
        return [Note(at=at, severity=severity, source="metrics", text=text) for severity, text in texts]

    def _changed_trouble(self, trouble: str | None, samples: Sequence[EngineSample]) -> Iterator[tuple[Severity, str]]:
        """Yield when the metrics page becomes unreadable, and when it is readable again.

        Each reason is noted once in an outage, and MOST_REASONS at most: readings may fail for several in turn.
        """
        if trouble is None:
            if self._reasons:
                answered = bool(samples) and not any(map(has_values, samples))
                yield Severity.INFO, "it answers again" if answered else "metrics are back"
            self._reasons = []
        elif trouble not in self._reasons and len(self._reasons) < MOST_REASONS:
            self._reasons.append(trouble)
            yield Severity.WARNING, trouble

    def _changed_readiness(self, not_ready: str) -> Iterator[tuple[Severity, str]]:
        """Yield that a server whose metrics are read takes no requests, and that it takes them again."""
        before, self._not_ready = self._not_ready, not_ready
        if not_ready and not before:
            yield Severity.WARNING, f"takes no new requests ({not_ready}), and its metrics are read"
        elif before and not not_ready:
            yield Severity.INFO, "takes requests again, by its health page"

    def _newly_lost(self, samples: Sequence[EngineSample]) -> Iterator[tuple[Severity, str]]:
        """Yield the fields that an earlier sample of this engine had and that are now missing or invalid."""
        lost: set[str] = set()
        for sample in samples:
            exported = {name for name in GAUGES if getattr(sample, name) is not None}
            lost |= self._exported - exported
            self._exported |= exported
        if new := sorted(lost - self._lost):
            text = f"no usable value of {', '.join(new)}: missing, negative, NaN or above {LARGEST_VALUE:g}"
            yield Severity.WARNING, text
        self._lost |= lost
