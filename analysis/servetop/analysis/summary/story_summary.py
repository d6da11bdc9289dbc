"""The verdict and the story of a run as a part of its summary."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from servetop.analysis.diagnosis.rate_interval import RateInterval
from servetop.analysis.field_metadata import INTERNAL
from servetop.analysis.story.story import Story
from servetop.core.units import MS_PER_S


@dataclass(frozen=True, slots=True, kw_only=True)
class StoryLineSummary:
    """One line of the story."""

    at: float | None
    """The time that it is about, seconds since the run's origin; None for the whole run."""
    text: str
    advice: bool
    """Whether it says what to try."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StorySummary:
    """What limited the run, and the lines that explain it; None is unknown or not applicable."""

    cause: str
    """`KV-bound`, `batch-bound`, `rate above capacity`, `long prompts`, `overloaded`, `concurrency-limited`,
    `client-bound`, `network-bound`, `other traffic`, `failing`, `engine failed`, `stalled`, `objectives missed`,
    `headroom`, `unclear` or `no load`."""
    headline: str
    onset: float | None
    """When the cause began, seconds."""
    until: float | None
    """When it ended, seconds; None if it lasted to the end of the run."""
    onset_rate: float | None
    """Target rate at the onset, requests/s."""
    worst_p99_ttft_ms: float | None
    """The highest p99 of TTFT from due over ten seconds."""
    capacity: float | None
    """Requests/s that the engine completed while requests waited."""
    sustainable_rate: float | None
    """The largest rate that keeps the objective on TTFT; without one, the capacity."""
    sustainable_rate_interval: RateInterval | None
    """Where that rate lies with a probability of 90 %; None if it is a lower bound."""
    sustainable_is_lower_bound: bool
    """Whether that rate was kept and the largest may be higher."""
    knee_rate: float | None
    """The rate above which half of the requests miss the objective."""
    knee_interval: RateInterval | None
    """Where the knee lies with a probability of 90 %."""
    ttft_objective_ms: float | None
    advised_max_num_seqs: int | None
    lines: tuple[StoryLineSummary, ...]
    sustainable_rate_range: RateInterval | None = field(default=None, metadata=INTERNAL)
    """Where the sustainable rate lies with a probability of 99 %, which a headline gives instead of a wide interval."""


def story_summary(story: Story) -> StorySummary:
    """Convert a story; that of a sweep has no rates of the whole run."""
    verdict, worst = story.verdict, story.verdict.worst_ttft
    if story.sweep is not None:  # it has these for each batch size
        verdict = replace(
            verdict,
            capacity=None,
            sustainable=None,
            sustainable_interval=None,
            sustainable_range=None,
            knee=None,
            knee_interval=None,
            advised_batch=None,
        )
    capacity = None if verdict.capacity is None or verdict.capacity.is_upper_bound else verdict.capacity.rate
    return StorySummary(
        cause=verdict.cause.value,
        headline=story.headline,
        onset=verdict.onset,
        until=verdict.until,
        onset_rate=verdict.onset_rate,
        worst_p99_ttft_ms=None if worst is None else worst.seconds * MS_PER_S,
        capacity=capacity,
        sustainable_rate=verdict.sustainable,
        sustainable_rate_interval=verdict.sustainable_interval,
        sustainable_rate_range=verdict.sustainable_range,
        sustainable_is_lower_bound=verdict.is_lower_bound,
        knee_rate=verdict.knee,
        knee_interval=verdict.knee_interval,
        ttft_objective_ms=None if verdict.objective is None else verdict.objective * MS_PER_S,
        advised_max_num_seqs=verdict.advised_batch,
        lines=tuple(StoryLineSummary(at=line.at, text=line.text, advice=line.advice) for line in story.lines),
    )
