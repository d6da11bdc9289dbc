"""The summary of a run as a tree of frozen dataclasses; docs/reference/metrics.md defines each metric.

Fields are in the order of the JSON keys. None means "not measured". Latencies are in milliseconds, as in the JSON form.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field

from servetop.analysis.exported.exported_summary import ExportedMetric
from servetop.analysis.failure_reasons import Failure
from servetop.analysis.field_metadata import FLAT, OMITTED, PARSED, RATE
from servetop.analysis.summary.cost_summary import CostSummary
from servetop.analysis.summary.set_up_types import RunSetUp
from servetop.analysis.summary.story_summary import StorySummary
from servetop.analysis.summary.trust_types import TrustSummary
from servetop.analysis.sweep.cell_checks import CellChecks
from servetop.analysis.sweep.sweep_verdict import SweepVerdict
from servetop.core.config import STANDARD_PERCENTILES
from servetop.core.interfaces.unrecorded import Unrecorded

METRICS = (
    "ttft", "tpot", "itl", "e2el", "client_queue_time", "ttft_from_due", "e2el_from_due", "e2el_including_client_queue",
)  # fmt: skip
"""Latencies of every summary; the last four start at the due time, and the last is vLLM's name for the one before."""
REASONING_METRICS = ("ttfot",)


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencySummary:
    """Statistics of one latency in milliseconds, with percentiles such as `p99.9`; None if nothing was measured."""

    mean: float | None
    std: float | None
    median: float | None
    percentiles: Mapping[str, float | None]

    def items(self) -> Mapping[str, float | None]:
        """Return all statistics by name."""
        return {"mean": self.mean, "std": self.std, "median": self.median, **self.percentiles}


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestSummary:
    """Totals, throughput and latencies of a set of requests."""

    num_prompts: int
    duration: float
    """Seconds from the first request sent to the last one done."""
    completed: int
    failed: int
    errors: int
    timeouts: int
    truncated: int
    cancelled: int
    total_input_tokens: int
    total_output_tokens: int
    request_throughput: float | None
    request_goodput: float | None
    output_throughput: float | None
    total_token_throughput: float | None
    max_output_tokens_per_s: float
    max_concurrent_requests: int
    total_reasoning_tokens: int | None = field(metadata=OMITTED)
    itl_reason: str | None
    """Why ITL and TPOT are None although tokens arrived."""
    latencies: Mapping[str, LatencySummary] = field(metadata=FLAT)
    """Statistics by metric."""

    def latency(self, metric: str, statistic: str) -> float | None:
        """Return one statistic, such as `p99` of `ttft`, in milliseconds; None also if it was not computed."""
        latency = self.latencies.get(metric)
        return None if latency is None else latency.items().get(statistic)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnSummary:
    """One turn of the conversations, from 1."""

    turn: int
    requests: int
    completed: int
    mean_ttft_ms: float | None
    p50_ttft_ms: float | None
    p99_ttft_ms: float | None
    mean_tpot_ms: float | None
    p50_tpot_ms: float | None
    p99_tpot_ms: float | None
    tpot_reason: str | None
    mean_prompt_tokens: float | None
    cached_share: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSummary:
    """Peaks and counters that the engine exported over a period."""

    max_kv_usage: float | None = None
    preemptions: float | None = None
    max_running: float | None = None
    max_waiting: float | None = None
    generation_tokens: float | None = None
    prompt_tokens: float | None = None
    prefix_cache_hits: float | None = None
    prefix_cache_queries: float | None = None
    prefix_cache_hit_rate: float | None = None
    prefix_cache_hit_rate_at_least: float | None = None
    prefix_cache_ideal_hit_rate: float | None = None
    peaks_reason: str | None = None
    """Why metrics are None although the engine exports them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergySummary:
    """Energy of the GPUs under load; all None if unknown."""

    joules: float | None = None
    joules_per_output_token: float | None = None
    joules_per_request: float | None = None
    mean_power: float | None = None
    """Watts."""
    gpus: int | None = None
    known_share: float | None = None
    """Fraction of the time for which the energy is known."""
    source: str | None = None

    @property
    def millijoules_per_token(self) -> float | None:
        """Millijoules per output token."""
        return None if self.joules_per_output_token is None else self.joules_per_output_token * 1e3


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurements:
    """The measurements of one period: requests, server, energy and trust."""

    requests: RequestSummary = field(metadata=FLAT)
    turns: tuple[TurnSummary, ...] | None = field(metadata=OMITTED)
    """None for a workload without conversations."""
    server: ServerSummary
    energy: EnergySummary
    trust: TrustSummary
    cost: CostSummary | None = field(default=None, metadata=OMITTED)
    """None without a price."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SteadySummary:
    """A steady window and its measurements; without a steady state, the reason."""

    start: float | None
    end: float | None
    seconds: float | None
    method: str
    reason: str | None
    measured: Measurements | None = field(metadata=FLAT)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageSummary:
    """One stage with load, except warm-ups."""

    stage: int
    label: str
    repeat: int
    request_rate: float | None = field(metadata=RATE)
    max_concurrency: int | None
    max_num_seqs: int | None
    start: float
    end: float | None
    preemptions: float | None
    cooldown_requests: int
    measured: Measurements = field(metadata=FLAT)
    steady: SteadySummary
    finished: bool
    outcome: str
    """`whole`, `cut-short` or `failed`; only a counted stage is in the totals."""
    failure: str | None
    counted: bool
    steered: str | None
    """How commands changed its load, as in `rate 3 to 27.9 req/s`; then it is no cell of a sweep."""
    settings: str | None = field(default=None, metadata=OMITTED | PARSED)
    """What a cell of a sweep sets besides its load, by name; None without any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedSummary:
    """A planned cell of a sweep that was not measured, because its row had ended."""

    label: str
    repeat: int
    request_rate: float | None = field(metadata=RATE)
    max_concurrency: int | None
    max_num_seqs: int | None
    """The planned batch size; None leaves it to the engine."""
    stage: int
    """The stage that ended the row."""
    reason: str
    settings: str | None = field(default=None, metadata=OMITTED | PARSED)
    """The settings of the cell besides its load, by name; None without any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSummary:
    """The requests for one model of a mix."""

    model: str
    weight: float
    requests: RequestSummary = field(metadata=FLAT)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaSummary:
    """One of several servers; behind a load balancer its requests are unknown."""

    replica: int
    url: str
    requests: RequestSummary | None = field(metadata=FLAT | OMITTED)
    server: ServerSummary


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSummary:
    """Name, version and sizes of the engine."""

    name: str
    version: str | None
    kv_blocks_total: int | None
    max_num_seqs: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetSummary:
    """Where the prompts of a run came from; numbers of rows are None for prompts that are not rows of a file."""

    name: str
    """As `--dataset-name`."""
    file: str | None
    """Name of the data file without its folder; None without one."""
    rows_used: int | None
    """Rows that became requests or conversations, each once however often the file was repeated."""
    rows_skipped: int | None
    """Malformed rows."""
    rows_left_out: int | None
    """Well-formed rows that the owners of the format do not send either."""
    random_tokens: str | None
    """What random token ids are: `ordinary` tokens of the model, or `unchecked`; None for other prompts, or unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """A whole run except its warm-up: set-up and measurements, in total and by stage."""

    set_up: RunSetUp = field(metadata=FLAT)
    recording: str | None
    recording_state: str
    engine: EngineSummary
    prefix_cache: str
    """State in which the prefix cache began, and how it was reached: `as-is`, `cold, by reset`."""
    exit_code: int | None
    error: str | None
    measured: Measurements = field(metadata=FLAT)
    failures: tuple[Failure, ...]
    cooldown_requests: int
    steady: SteadySummary
    models: tuple[ModelSummary, ...] | None = field(metadata=OMITTED)
    replicas: tuple[ReplicaSummary, ...] | None = field(metadata=OMITTED)
    stages: tuple[StageSummary, ...]
    story: StorySummary | None = field(default=None, metadata=OMITTED)
    dataset: DatasetSummary | None = field(default=None, metadata=OMITTED)
    sweep: SweepVerdict | None = field(default=None, metadata=OMITTED)
    """None for other runs, and for a sweep without a cell that was measured as a whole."""
    engine_metrics: tuple[ExportedMetric, ...] | None = field(default=None, metadata=OMITTED)
    skipped: tuple[SkippedSummary, ...] | None = field(default=None, metadata=OMITTED)
    """Cells of a sweep that were not measured because their row had ended (`until`); None without any."""
    cell_thresholds: CellChecks | None = field(default=None, metadata=OMITTED)
    """Whether the cells of a sweep meet their thresholds; None without thresholds of cells."""
    predicted: bool | None = field(default=None, metadata=OMITTED)  # True for a run that the simulator computed
    imported: str | None = field(default=None, metadata=OMITTED)  # tool and file of another load generator's run
    not_recorded: Unrecorded | None = field(default=None, metadata=OMITTED)

    @property
    def requests(self) -> RequestSummary:
        """The requests of the whole run."""
        return self.measured.requests


def statistic_keys(metrics: tuple[str, ...]) -> tuple[str, ...]:
    """Return the JSON keys of the standard statistics of some latencies, such as `p99_ttft_ms`."""
    statistics = ("mean", "median", "std", *(f"p{q:g}" for q in STANDARD_PERCENTILES))
    return tuple(f"{statistic}_{metric}_ms" for metric in metrics for statistic in statistics)


_NO_NUMBERS = ("total_reasoning_tokens", "itl_reason", "latencies")
TOTALS = tuple(each.name for each in dataclasses.fields(RequestSummary) if each.name not in _NO_NUMBERS)
REQUEST_KEYS = (*TOTALS, *statistic_keys(METRICS))
"""Keys of the numbers of any RequestSummary."""
REASONING_KEYS = statistic_keys(REASONING_METRICS)
