"""The report of a comparison as plain values: its fields are the keys of `servetop compare --json`."""

from __future__ import annotations

from dataclasses import dataclass, field

from servetop.analysis.cells.stage_load import StageLoad
from servetop.analysis.comparison.measured_difference import MeasuredDifference
from servetop.analysis.comparison.start_spread import StartSpread
from servetop.analysis.field_metadata import INTERNAL, RATE
from servetop.analysis.manifest.manifest_diff import ManifestDifference


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedArm:
    """One configuration, measured by one or several recordings."""

    letter: str
    """`A`, `B`, …"""
    name: str
    """Label of the run, or else the name of its recording."""
    recordings: tuple[str, ...]
    engine: str
    engine_version: str | None
    model: str | None
    seeds: tuple[int, ...]
    """The different seeds of the recordings."""
    starts: int
    """Number of recordings: the engine was started for each."""
    seconds: float
    """Length of all recordings."""
    price_per_hour: float | None
    """The price of everything that serves; None without one."""
    requests: int
    """Requests that ended, of any status, without warm-ups."""
    failed: int
    """Requests that did not succeed."""
    date: str
    """Start of the first recording, as ISO 8601."""
    running: bool
    """One of the runs has not ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherCause:
    """A measured condition, other than the change under test, that may explain a difference."""

    kind: str
    """Such as `cache`, `lengths`, `client`, `kv size`, `gpu clocks` or `replicas`."""
    text: str
    metrics: tuple[str, ...]
    """The latencies and rates that it bears on, such as `ttft` and `throughput`."""
    severity: str
    """`warning`, or `error` if the figures of a run do not describe the engine."""
    pairs: int
    """Pairs of recordings in which it was found."""
    of_pairs: int
    """Pairs of recordings that were examined."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedStage:
    """Two stages of equal load."""

    load: StageLoad = field(metadata=INTERNAL)
    label: str
    request_rate: float = field(metadata=RATE)
    """Requests/s; `inf`: as fast as possible."""
    ramp_from: float | None
    max_concurrency: int | None
    max_num_seqs: int | None
    seconds_a: float
    """Length of the compared windows."""
    seconds_b: float
    requests_a: int
    requests_b: int
    starts_a: int
    starts_b: int
    same_requests: bool
    """Both runs sent the same requests, which were compared pairwise."""
    unsteady: str
    """Why a window is not a steady state; empty if all are."""
    needed_seconds: float | None
    """Length that the windows need for their variation to be judged; None if they have it."""
    not_measured: tuple[str, ...]
    """Keys of metrics that neither side measured."""
    metrics: tuple[MeasuredDifference, ...]
    """Empty if one side has too few requests."""

    @property
    def seconds(self) -> tuple[float, float]:
        """Length of the compared windows of A and B."""
        return self.seconds_a, self.seconds_b

    @property
    def requests(self) -> tuple[int, int]:
        """The requests of A and B."""
        return self.requests_a, self.requests_b

    @property
    def starts(self) -> tuple[int, int]:
        """The starts of A and B."""
        return self.starts_a, self.starts_b

    def metric(self, key: str) -> MeasuredDifference | None:
        """Return the metric with this key; None if neither side measured it."""
        return next((each for each in self.metrics if each.key == key), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPairsAdvice:
    """The command that alternates two configurations until their difference is known."""

    command: str
    pairs_low: int
    """Pairs that a series measures at least."""
    pairs_high: int
    """Pairs with which most series end."""
    seconds_low: float
    """Time that `pairs_low` pairs take, including the starts of the engine; `seconds_high`: that of `pairs_high`."""
    seconds_high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakEvenPrice:
    """The price at which a configuration costs as much per token as A; infinite limits are None."""

    label: str
    """The name of the stage."""
    per_hour: float
    low: float
    """Lower limit of the interval that contains the true price with 95 %."""
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmComparison:
    """One configuration compared with the first."""

    b: ComparedArm
    verdict: str
    """`better`, `worse`, `mixed`, `no difference seen` or `cannot tell`."""
    headline: str
    """The result in one sentence."""
    run_pairs: RunPairsAdvice | None
    """What would answer where the recordings are too short, not steady, or more of them would take hours."""
    warnings: tuple[str, ...]
    differences: tuple[ManifestDifference, ...]
    """Keys of the manifests that differ."""
    unknown: tuple[str, ...]
    """Keys that only one of the manifests has, so that they may differ."""
    other_causes: tuple[OtherCause, ...]
    start_spread: StartSpread
    """What is assumed between starts, at least, where a configuration has fewer than five; 0 with more."""
    stages: tuple[ComparedStage, ...]
    break_even: tuple[BreakEvenPrice, ...]
    """One price for each stage; empty without prices."""
    only_a: tuple[str, ...]
    """Loads without a counterpart."""
    only_b: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonReport:
    """All configurations compared with the first."""

    a: ComparedArm
    error_rate: float
    """Largest probability of a wrong `better` or `worse` in a family of metrics."""
    confidence: float
    """The confidence of every interval."""
    comparisons: tuple[ArmComparison, ...]
