"""The summary of a watch as a tree of frozen dataclasses; docs/how-to/watch.md describes it.

Every figure is the server's own. Fields are in the order of the JSON keys. None means "not exported".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from servetop.analysis.exported.exported_summary import ExportedMetric
from servetop.analysis.field_metadata import FLAT, OMITTED
from servetop.analysis.summary.summary_types import EngineSummary


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedLimit:
    """A limit of the server that requests ran into, a queue whose cause its metrics do not show, or failed requests."""

    name: str
    """`failing`, `KV-bound`, `batch-bound`, `requests wait`, or of one of several servers `slower than the others`."""
    seconds: float
    """Its duration in all."""
    onset: float
    """When it began first, seconds since the origin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedFigures:
    """What the server counted itself while it was watched: means over that time."""

    seconds: float
    """From its first metrics page to the end."""
    seconds_without_metrics: float
    """Parts of it in which the server did not respond, or its metrics could not be read."""
    requests: float | None
    """Requests that the server finished."""
    request_throughput: float | None
    """Requests/s that it finished."""
    output_throughput: float | None
    """Output tokens/s."""
    prompt_throughput: float | None
    """Prompt tokens/s."""
    requests_ended: float | None
    """Requests that were served, refused or failed; None if the server counts none as failed, and before format 1.24.

    Where the server counts answers of its HTTP server, these are all of them.
    """
    requests_failed: float | None
    """Those of them that the server failed or refused."""
    error_rate: float | None
    """`requests_failed` / `requests_ended`, 0-1; None without a request too."""
    mean_ttft_ms: float | None
    mean_tpot_ms: float | None
    mean_e2el_ms: float | None
    mean_queue_ms: float | None
    """Mean time in the queue."""
    limits: tuple[WatchedLimit, ...]
    judged: bool = True
    """False if the server answered, and never exported a metric by which limits are judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedServer:
    """Peaks and counters that the server exported while it was watched; counters add up through restarts."""

    max_kv_usage: float | None
    max_running: float | None
    max_waiting: float | None
    preemptions: float | None
    generation_tokens: float | None
    prompt_tokens: float | None
    prefix_cache_hits: float | None
    prefix_cache_queries: float | None
    prefix_cache_hit_rate: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaWatch:
    """One of several watched servers: what it counted, and what limited it."""

    replica: int
    """Its number, from 0, in the order in which servers were listed."""
    name: str
    url: str
    state: str
    """At the end: `attaching`, `attached`, `restarted`, `gone`, `refused` or `removed`."""
    reason: str | None
    """Why it does not respond or takes no requests, or what its last restart changed."""
    restarts: int
    backend: str | None
    version: str | None
    model_id: str | None
    differs: str | None
    """What is not as at most servers, such as `max_num_seqs 8 (16 elsewhere)`."""
    headline: str
    p90_ttft_ms: float | None
    """From the server's own histogram."""
    server: WatchedServer
    watched: WatchedFigures | None = field(default=None, metadata=OMITTED)
    """None if no metrics page was read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchSummary:
    """A watch: which server, what it counted, and what limited it."""

    metadata: Mapping[str, str] = field(metadata=FLAT)
    """Each `--metadata KEY=VALUE`, unless the summary has that key."""
    date: str
    backend: str
    label: str | None
    model_id: str | None
    url: str | None
    recording: str | None
    recording_state: str
    engine: EngineSummary
    exit_code: int | None
    error: str | None
    headline: str
    server: WatchedServer
    watched: WatchedFigures | None = field(default=None, metadata=OMITTED)
    """None if no metrics page was read."""
    engine_metrics: tuple[ExportedMetric, ...] | None = field(default=None, metadata=OMITTED)
    """Metrics of the engine page, with p50 and p90 of the engine's histograms."""
    replicas: tuple[ReplicaWatch, ...] | None = field(default=None, metadata=OMITTED)
    """Each of several servers; the other figures are then their sums, and `watched.limits` is empty."""
