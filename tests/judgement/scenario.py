"""A simulated run with its truth: what went wrong, and when, by the simulator's internal state."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from servetop.simulator.virtual_run.virtual_run import VirtualRun, run_virtually
from servetop.simulator.virtual_run.virtual_run_plan import VirtualRunPlan
from tests.judgement.constant_rates import ConstantRates


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """What is known about a run without judging it. Times are run times in seconds, None for a healthy run."""

    cause: Cause
    onset: float | None = None
    """When the cause began to act for good: start of the first queue that lasted, first late or failed request, first
    long prompt."""
    first_sign: float | None = None
    """When it acted first, if only for a moment: first request kept waiting by the limit, first preemption."""
    until: float | None = None
    """When its effect ended: the queue was served, the last late request had its first token."""
    client_rate: float | None = None
    """Requests per second that the slow client can send."""
    share: float = 1.0
    """Fraction of the queue's time for which the cause kept it waiting; for failures, of all requests that failed."""
    detail: str = ""
    """How it was brought about."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Scenario:
    """One run; `run` and `rates` are computed on first use and kept."""

    name: str
    kind: str
    plan: VirtualRunPlan
    truth: Truth
    base: ConstantRates | None = None
    """The engine and workload under constant rates, for the sustainable rate; None where it has no meaning."""

    @cached_property
    def run(self) -> VirtualRun:
        """The ticks and events of the run."""
        return run_virtually(self.plan)

    def keeping(self, run: VirtualRun) -> Scenario:
        """Keep a run that was computed to confirm the truth."""
        self.__dict__["run"] = run
        return self

    @property
    def plan_end(self) -> float:
        """Run time at which the last request is due, and only the backlog remains; seconds."""
        return max(record.due for record in self.run.records)

    @property
    def objective(self) -> float:
        """Longest acceptable TTFT in seconds."""
        return self.plan.config.goodput["ttft"]

    @property
    def sustainable_rate(self) -> float | None:
        """Largest constant rate at which 95 % of the requests meet the objective; None if not defined."""
        return None if self.base is None else self.base.largest(0.95)

    @property
    def knee_rate(self) -> float | None:
        """Largest constant rate at which the median request meets the objective; the queue is unstable above it."""
        return None if self.base is None else self.base.largest(0.50)

    @property
    def overloaded_from(self) -> float | None:
        """Run time at which the scheduled rate first exceeds the knee; None if it never does, or has no knee."""
        knee, start = self.knee_rate, self.plan.begin
        if knee is None:
            return None
        for stage in self.plan.config.stages:
            low = stage.request_rate if stage.ramp_from is None else stage.ramp_from
            if max(low, stage.request_rate) > knee:
                passed = 0.0 if low > knee else (knee - low) / (stage.request_rate - low)
                return start + passed * (stage.duration or 0.0)
            start += stage.duration or 0.0
        return None


class Cause(StrEnum):
    """Why requests waited or failed."""

    KV = "kv"
    BATCH = "batch"
    RATE = "rate"
    LONG_PROMPTS = "long prompts"
    CLIENT = "client"
    FAILING = "failing"
    CONCURRENCY = "concurrency limit"
    OTHERS = "other clients"
    NETWORK = "network"
    STALL = "stalls"
    HEALTHY = "healthy"
    MISSED = "objectives missed"
    """Requests miss their objectives, and no queue lasts."""
    UNCLEAR = "unclear"
    """Nothing that one cause explains: near capacity, for a moment, several limits in turn."""


def describe(scenario: Scenario) -> str:
    """Describe machine, load and truth in one line, without the rates that take seconds to compute."""
    plan, truth = scenario.plan, scenario.truth
    config = plan.config
    machine = f"{config.engine.model} on {plan.gpu}, {plan.engine_profile}"
    settings = ", ".join(f"{key}={value}" for key, value in plan.settings.items())
    stages = "; ".join(
        stage.label if stage.duration is None else f"{stage.label} for {stage.duration:g} s" for stage in config.stages
    )
    workload = config.workload
    around = f" ± {workload.range_ratio:.0%}" if workload.range_ratio else ""
    around = f", {workload.lengths.partition(',')[0]}" if workload.lengths else around
    lengths = f"{workload.input_len} in, {workload.output_len} out{around}"
    when = "" if truth.onset is None else f" from {truth.onset:.1f} s to {_seconds(truth.until)}"
    detail = f" ({truth.detail})" if truth.detail else ""
    return f"{scenario.name}: {machine} ({settings}); {lengths}; {stages}: {truth.cause}{when}{detail}"


def _seconds(at: float | None) -> str:
    return "the end" if at is None else f"{at:.1f} s"
