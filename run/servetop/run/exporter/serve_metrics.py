"""Connects the metrics of a run with its recorder and with the port at which they are served."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

from servetop.core.clock import ClockAnchor
from servetop.core.config import RunConfig
from servetop.core.events import Severity
from servetop.run.exporter.metrics_server import MetricsServer
from servetop.run.exporter.metrics_socket import metrics_url
from servetop.run.exporter.run_metrics import RunIdentity, RunMetrics
from servetop.run.loop.tick_recorder import TickRecorder
from servetop.run.manifest.versions import servetop_version
from servetop.run.outcome import RunPhase


def serve_metrics(
    config: RunConfig,
    listening: socket.socket,
    *,
    recording: Path,
    anchor: ClockAnchor,
    ticks: TickRecorder,
    phase: Callable[[], RunPhase],
) -> MetricsServer:
    """Return the server of a run's metrics; it answers while it follows the run."""
    identity = RunIdentity(recording=recording.stem, version=servetop_version(), began_at=anchor.wall_epoch_s)
    metrics = RunMetrics(config, identity)
    metrics.phase = phase
    ticks.listener = metrics
    ticks.note(Severity.INFO, "exporter", text=f"serves its metrics at {metrics_url(listening)}")
    return MetricsServer(listening, lambda openmetrics: metrics.text(openmetrics=openmetrics))
