"""Judges simulated runs, and compares each judgement with the truth."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from servetop.analysis.diagnosis.episode_fold import EpisodeFold
from servetop.analysis.diagnosis.run_record import RunRecord
from servetop.analysis.diagnosis.run_verdict import RunCause, RunVerdict, run_verdict
from servetop.analysis.series.tick_history import TickHistory
from servetop.analysis.story.story import Story, story_of
from tests.judgement.scenario import Cause, Scenario

CAUSES = {
    RunCause.KV: Cause.KV,
    RunCause.BATCH: Cause.BATCH,
    RunCause.RATE: Cause.RATE,
    RunCause.LONG_PROMPTS: Cause.LONG_PROMPTS,
    RunCause.CLIENT: Cause.CLIENT,
    RunCause.FAILING: Cause.FAILING,
    RunCause.ENGINE_FAILED: Cause.FAILING,
    RunCause.HEADROOM: Cause.HEALTHY,
}
"""The truth that each verdict claims."""
ONSET_WITHIN = 2.0
"""Seconds."""
RATE_WITHIN = 0.10


@dataclass(frozen=True, eq=False)
class JudgedScenario:
    """A scenario with its judgement; each part is computed on first use."""

    scenario: Scenario

    @cached_property
    def record(self) -> RunRecord:
        """The run as its recording would hold it, with its episodes."""
        run = self.scenario.run
        history, fold = TickHistory(run.ticks), EpisodeFold()
        fold.update_log(run.log_lines)
        fold.update(history, run.header.engine, stages=run.stages)
        return RunRecord(
            header=run.header, history=history, episodes=fold.episodes, stages=run.stages, end=run.end,
            replica_samples=run.replica_samples,
        )  # fmt: skip

    @cached_property
    def verdict(self) -> RunVerdict:
        """The verdict of the run."""
        return run_verdict(self.record)

    @property
    def story(self) -> Story:
        """The story of the run."""
        return story_of(self.record, self.verdict)

    @property
    def right_cause(self) -> bool:
        """Whether the verdict names the true cause."""
        return CAUSES.get(self.verdict.cause) is self.scenario.truth.cause

    @property
    def onset_error(self) -> float:
        """Seconds by which the judged onset is later than the true one, or than its first sign if that is nearer."""
        found = self.verdict.onset
        truths = [each for each in (self.scenario.truth.onset, self.scenario.truth.first_sign) if each is not None]
        return math.nan if found is None or not truths else min((found - each for each in truths), key=abs)

    @property
    def knee_error(self) -> float:
        """Relative error of the knee of an overload by the engine's limits; NaN for other runs, inf without a knee."""
        return _relative(self.verdict.knee, self.scenario.knee_rate) if self._overloaded else math.nan

    @property
    def sustainable_error(self) -> float:
        """Relative error of the sustainable rate of such an overload."""
        return _relative(self.verdict.sustainable, self.scenario.sustainable_rate) if self._overloaded else math.nan

    @property
    def kept_excess(self) -> float:
        """By how much the rate that a healthy run claims as kept is above the sustainable one; at least 0, relative."""
        claimed, truth = self.verdict.sustainable, self.scenario.truth
        if truth.cause is not Cause.HEALTHY or not self.verdict.is_lower_bound or claimed is None:
            return math.nan
        return max(_relative(claimed, self.scenario.sustainable_rate), 0.0)

    @property
    def _overloaded(self) -> bool:
        return self.scenario.truth.cause in (Cause.KV, Cause.BATCH, Cause.RATE)


def _relative(found: float | None, truth: float | None) -> float:
    if truth is None:
        return math.nan
    return math.inf if found is None else found / truth - 1
