"""Connects the metrics of a run with its recorder, the port at which they are served, and the collector they go to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from servetop.core.clock import ClockAnchor, MonotonicClock
from servetop.core.config import RunConfig
from servetop.core.events import Severity
from servetop.run.exporter.metrics_server import MetricsServer
from servetop.run.exporter.metrics_socket import metrics_url
from servetop.run.exporter.run_metrics import RunIdentity, RunMetrics
from servetop.run.loop.tick_recorder import TickRecorder
from servetop.run.manifest.versions import servetop_version
from servetop.run.outcome import RunPhase
from servetop.run.process.execution import Execution


class MetricsFollower(Protocol):
    """Serves or pushes the metrics of a run."""

    async def follow(self) -> None:
        """Work until cancelled."""
        ...


def metrics_followers(
    config: RunConfig,
    execution: Execution,
    *,
    recording: Path,
    anchor: ClockAnchor,
    ticks: TickRecorder,
    phase: Callable[[], RunPhase],
) -> list[MetricsFollower]:
    """Return what serves and pushes the metrics of a run while it follows the run."""
    identity = RunIdentity(recording=recording.stem, version=servetop_version(), began_at=anchor.wall_epoch_s)
    metrics = RunMetrics(config, identity)
    metrics.phase = phase
    ticks.listener = metrics
    followers: list[MetricsFollower] = []
    if execution.metrics is not None:
        ticks.note(Severity.INFO, "exporter", text=f"serves its metrics at {metrics_url(execution.metrics)}")
        followers.append(MetricsServer(execution.metrics, lambda openmetrics: metrics.text(openmetrics=openmetrics)))
    if execution.otlp:
        followers.append(_push(execution.otlp, metrics, identity, anchor=anchor, ticks=ticks))
    return followers


def _push(
    endpoint: str, metrics: RunMetrics, identity: RunIdentity, *, anchor: ClockAnchor, ticks: TickRecorder
) -> MetricsFollower:
    from servetop.run.exporter.otlp.otlp_json import otlp_request
    from servetop.run.exporter.otlp.otlp_push import OtlpPush

    clock, version = MonotonicClock(anchor.origin_ns), identity.version
    resource = {"service.name": "servetop", "service.version": version, "service.instance.id": identity.recording}

    def request() -> bytes:
        now = anchor.wall_epoch_s + clock.now()
        return otlp_request(metrics.families(), resource=resource, version=version, began_at=identity.began_at, now=now)

    return OtlpPush(endpoint, request, note=lambda text: ticks.note(Severity.WARNING, "exporter", text=text))
