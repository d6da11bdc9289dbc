"""A cause that is planted into one of two runs is found by its own step, and the others stay near 0."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from servetop.analysis.reconciliation.client_rows import ClientRows
from servetop.analysis.reconciliation.definitions import ReconciledMetric
from servetop.analysis.reconciliation.reconcile import Reconciliation, percent_of, reconcile
from servetop.analysis.reconciliation.waterfall import DifferenceWaterfall, ReconciledRun, StepKind
from servetop.core.events import RequestRecord
from tests.analysis.reconciliation.synthetic_runs import PlantedRun, planted
from tests.run.audit.small_records import record

BASE = PlantedRun(seed=3)
TTFT, TPOT, ITL, E2EL = (
    ReconciledMetric.TTFT, ReconciledMetric.TPOT, ReconciledMetric.ITL, ReconciledMetric.E2EL,
)  # fmt: skip


def found(*, truth: bool = False, **changes: Any) -> Reconciliation:
    """The runs of two seeds, the second with a planted cause."""
    return reconcile(planted(BASE, truth=truth), planted(replace(BASE, seed=4, **changes), truth=truth))


def of(result: Reconciliation, metric: ReconciledMetric) -> DifferenceWaterfall:
    return next(each for each in result.waterfalls if each.metric is metric)


def percents(waterfall: DifferenceWaterfall) -> dict[str, float]:
    return {each.kind: percent_of(waterfall, each.effect) for each in waterfall.steps if each.effect is not None}


@pytest.mark.parametrize(
    ("changes", "truth", "metric", "step", "percent"),
    [
        ({"rate": 12.0}, False, TTFT, StepKind.LOAD, 10.0),
        ({"rate": 12.0}, False, TPOT, StepKind.LOAD, 8.6),
        ({"prompts": (150, 250), "cached": 0.375}, False, TTFT, StepKind.WORKLOAD, 27.0),
        ({"outputs": (48, 68)}, False, E2EL, StepKind.WORKLOAD, 13.0),
        ({"cached": 0.7}, False, TTFT, StepKind.CACHE, -20.0),
        ({"client_delay": 0.02}, True, TTFT, StepKind.CLIENT, 12.0),
        ({"slower": 0.02}, False, TTFT, StepKind.UNEXPLAINED, 12.0),
        ({"slower": 0.02}, True, TTFT, StepKind.UNEXPLAINED, 12.0),
        ({"cold": 6}, False, TTFT, StepKind.WINDOW, 6.0),
        ({"tokens_a_chunk": 2, "tool": "vLLM bench"}, False, ITL, StepKind.DEFINITION, 67.0),
    ],
)
def test_a_planted_cause_is_in_its_own_step(
    changes: dict[str, Any], truth: bool, metric: ReconciledMetric, step: str, percent: float
) -> None:
    waterfall = of(found(truth=truth, **changes), metric)
    effects = percents(waterfall)
    assert effects.pop(step) == pytest.approx(percent, rel=0.25)
    chance = {"load": 2.5, "workload": 2.5, "window": 1.0, "cache": 2.0}  # what two seeds differ by
    if "cached" in changes:
        chance |= {"cache": 6.0, "workload": 6.0}
    for name, effect in effects.items():
        assert abs(effect) < chance.get(name, 0.6), (changes, effects)


def test_the_steps_add_up_to_the_difference() -> None:
    for changes in ({"rate": 10.0}, {"tokens_a_chunk": 2, "tool": "AIPerf"}, {"cold": 30}):
        for each in found(**changes).waterfalls:
            total = sum(step.effect or 0.0 for step in each.steps)
            assert each.a + total == pytest.approx(each.b, rel=1e-9)


def test_runs_that_differ_by_chance_are_said_to_in_about_95_percent() -> None:
    plans = [replace(BASE, seed=seed, count=250) for seed in range(100, 130)]
    inside = [
        of(reconcile(planted(first), planted(second)), metric).within_chance
        for first, second in zip(plans[::2], plans[1::2], strict=True)
        for metric in (TTFT, TPOT)
    ]
    assert 25 <= sum(map(bool, inside)) <= 30


def test_the_conclusion_names_the_largest_reasons_and_what_is_left() -> None:
    assert found(cached=0.7).conclusion.startswith("largest reasons: cache (-19.")
    result = found(slower=0.05).conclusion
    assert "of the mean TTFT, more than chance explains of mean TTFT" in result


def test_steps_without_evidence_say_what_is_missing() -> None:
    one, other = planted(BASE), planted(replace(BASE, seed=4))
    blind = replace(one, rows=replace(one.rows, times_known=False, cached=one.rows.cached * float("nan")))
    steps = {each.kind: each for each in of(reconcile(blind, other), TTFT).steps}
    for kind, text in {
        StepKind.WINDOW: "the file of A does not have the times at which requests were sent",
        StepKind.LOAD: "the file of A does not have the times at which requests were sent",
        StepKind.CACHE: "the file of A does not have the cached tokens of each request",
        StepKind.CLIENT: "the server's own times of the requests of A and B are missing",
    }.items():
        assert (steps[kind].effect, steps[kind].evidence) == (None, text)


def test_loads_and_lengths_without_a_common_value_are_not_known() -> None:
    fixed: dict[str, Any] = {"prompts": (128, 128), "outputs": (50, 50)}
    one = planted(replace(BASE, **fixed))
    other = planted(replace(BASE, seed=4, prompts=(136, 136), outputs=(60, 60)))
    result = reconcile(one, other)
    step = {each.kind: each for each in of(result, TTFT).steps}[StepKind.WORKLOAD]
    assert step.effect is None
    assert "128.0 in A, 136.0 in B (+8 in each request, as a chat template or special tokens add)" in step.evidence
    assert "128 in A and 136 in B share no value, so their effect cannot be learnt" in step.evidence
    longer = percents(of(result, E2EL))[StepKind.WORKLOAD]  # ten more tokens at the mean TPOT
    assert longer == pytest.approx(100 * 10 * 0.0183 / 1.12, rel=0.1)


def test_figures_of_few_requests_are_missing() -> None:
    few = planted(replace(BASE, count=20))
    result = reconcile(few, few)
    assert set(result.missing) == {TTFT, TPOT, ITL, E2EL}
    assert [each.unexplained_percent for each in result.waterfalls] == [0.0, 0.0]


def in_groups(seed: int, *, sizes: tuple[int, int] = (1, 4), prompts: tuple[int, int] = (100, 200)) -> ReconciledRun:
    """Groups of requests that are sent at once and prefilled together: TTFT follows from all their prompt tokens."""
    random = np.random.default_rng(seed)
    requests: list[RequestRecord] = []
    for at in np.cumsum(random.uniform(0.3, 0.7, 200)):
        lengths = random.integers(prompts[0], prompts[1] + 1, int(random.integers(sizes[0], sizes[1] + 1)))
        ttft = 0.05 + 0.0002 * float(lengths.sum())
        for number, length in enumerate(lengths):
            sent = float(at) + 0.0001 * number
            took = ttft + float(random.normal(0, 0.001))
            row = record(len(requests), sent=sent, first=sent + took, done=sent + took + 0.4)
            requests.append(replace(row, prompt_tokens=int(length)))
    return ReconciledRun(tool="servetop", rows=ClientRows.of(requests), closed=False)


@pytest.mark.parametrize(
    ("changes", "step", "percent"),
    [
        ({"sizes": (2, 6)}, StepKind.LOAD, 100 * 0.0002 * 150 * 1.33 / 0.159),
        ({"prompts": (150, 250)}, StepKind.WORKLOAD, 100 * 0.0002 * 50 * 3.0 / 0.155),
    ],
)
def test_prompts_that_are_prefilled_together_are_load_by_their_number_and_workload_by_their_length(
    changes: dict[str, Any], step: str, percent: float
) -> None:
    effects = percents(of(reconcile(in_groups(1), in_groups(2, **changes)), TTFT))
    assert effects[step] == pytest.approx(percent, rel=0.15)
    assert abs(effects[StepKind.UNEXPLAINED]) < 1.0


def test_the_zero_of_the_servers_clock_does_not_matter() -> None:
    def served(seed: int, shift: float) -> ReconciledRun:
        run = planted(replace(BASE, seed=seed, client_delay=0.01), truth=True)
        assert run.rows.server is not None
        moved = replace(run.rows.server, arrived=run.rows.server.arrived + shift, ended=run.rows.server.ended + shift)
        return replace(run, rows=replace(run.rows, server=moved), closed=True, concurrency=8)

    near, far = (reconcile(served(3, shift), served(4, 2 * shift)) for shift in (0.0, 64.0))
    for one, other in zip(near.waterfalls, far.waterfalls, strict=True):
        assert [each.evidence for each in one.steps] == [each.evidence for each in other.steps]
        assert percents(one) == pytest.approx(percents(other), abs=1e-6)
    load = next(each for each in of(near, TTFT).steps if each.kind == StepKind.LOAD)
    assert "in flight when one was sent: 7.78 in A, 8.25 in B" in load.evidence
