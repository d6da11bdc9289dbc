"""Recordings of searches, made in virtual time, and a planner that needs no statistics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from servetop.core.config import RunConfig, StageConfig, WorkloadConfig
from servetop.core.config_values.search_config import SearchConfig
from servetop.run.search.objective_text import parse_tiers
from servetop.run.search.search_answer import AnswerKind, TierAnswer
from servetop.run.search.search_evidence import Evidence, NextProbe
from servetop.run.search.search_setup import SearchSetup
from servetop.simulator.virtual_run.virtual_run import run_virtually
from servetop.simulator.virtual_run.virtual_run_plan import ClientCosts, VirtualRunPlan
from tests.judgement.recordings import write_recording

SEARCH = SearchConfig(slo=("p99_ttft<500ms",), low=1.0, high=100.0, budget=60.0)
FOUND = TierAnswer(kind=AnswerKind.FOUND, load=11.2, low=10.9, high=11.5, binding="p99_ttft<500ms")


@dataclass
class GivenPlan:
    """Answers the same, and proposes loads one after the other: a list that ends."""

    loads: Sequence[NextProbe]
    answer: TierAnswer = FOUND

    def next(self, evidence: Evidence) -> NextProbe | None:
        """The load that follows as many probes as were made."""
        return self.loads[len(evidence.probes)] if len(evidence.probes) < len(self.loads) else None

    def answers(self, evidence: Evidence) -> tuple[TierAnswer, ...]:
        return (self.answer,)


def setup(*loads: NextProbe, search: SearchConfig = SEARCH, answer: TierAnswer = FOUND) -> SearchSetup:
    return SearchSetup(
        search=search, tiers=parse_tiers(search.slo, goodput={}), goodput={}, planner=GivenPlan(loads, answer)
    )


def config(*stages: StageConfig, search: SearchConfig = SEARCH, **changes: Any) -> RunConfig:
    return RunConfig(workload=WorkloadConfig(input_len=32, output_len=8), stages=stages, search=search, **changes)


def record(path: Path, *rates: float, seconds: float = 8.0, client: ClientCosts | None = None, **changes: Any) -> Path:
    """Record a search that kept these rates."""
    stages = [StageConfig(request_rate=rate, duration=seconds) for rate in rates]
    plan = VirtualRunPlan(config=config(*stages, **changes), settings={}, client=client or ClientCosts())
    write_recording(run_virtually(plan), path)
    return path
