"""Other causes than the change, over pairs of recordings and over common stages."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from servetop.analysis.cells.stage_load import StageLoad
from servetop.analysis.comparison.alignment import ArmRun
from servetop.analysis.comparison.stage_sample import StageSample
from servetop.analysis.confounding.conditions import KvSize, RunConditions
from servetop.reports.comparison.measured_arm import MeasuredRun
from servetop.reports.comparison.other_causes import other_causes, paired_runs
from tests.analysis.measured_arms import CONFIG, arm, run
from tests.analysis.measured_conditions import client, conditions

SMALL = KvSize(blocks=500.0, block_size=16)


def stage(rate: float, index: int) -> StageSample:
    none: Any = np.empty(0)
    return StageSample(
        load=StageLoad(request_rate=rate), seed=1, start=0.0, until=60.0, steady=True, number=none, due=none, sent=none,
        done_at=none, ok=none, latencies={}, prompt_tokens=none, output_tokens=none, index=index,
    )  # fmt: skip


def loaded(name: str, whole: RunConditions, *rates: float) -> MeasuredRun:
    stages = ArmRun(name=name, stages=[stage(rate, index) for index, rate in enumerate(rates)])
    return run(name, arm=stages, conditions=whole)


def seeded(name: str, seed: int, **fields: Any) -> MeasuredRun:
    return run(name, replace(CONFIG, seed=seed), **fields)


def test_a_cause_is_counted_over_the_pairs_in_which_it_is_found() -> None:
    b = arm("B", run("b1"), run("b2", conditions=conditions(kv=SMALL)))
    (cause,) = other_causes(arm("A", run("a1"), run("a2")), b)
    assert (cause.kind, cause.severity, cause.pairs, cause.of_pairs) == ("kv size", "warning", 1, 2)
    assert "ttft" in cause.metrics
    assert other_causes(arm("A", run("a")), arm("B", run("b"))) == ()


def test_a_cause_in_a_third_configuration_has_its_letter() -> None:
    (cause,) = other_causes(arm("A", run("a")), arm("C", run("c", conditions=conditions(kv=SMALL))))
    assert " C " in cause.text
    assert " B " not in cause.text


def test_recordings_are_paired_by_seed_where_each_has_a_partner() -> None:
    a = arm("A", seeded("a1", 1), seeded("a2", 2))
    swapped = arm("B", seeded("b2", 2), seeded("b1", 1), )  # fmt: skip
    assert [(first.name, second.name) for first, second in paired_runs(a, swapped)] == [("a1", "b1"), ("a2", "b2")]
    other = arm("B", seeded("b3", 3), seeded("b1", 1))
    assert [(first.name, second.name) for first, second in paired_runs(a, other)] == [("a1", "b3"), ("a2", "b1")]


def test_only_common_stages_count_if_a_run_has_others() -> None:
    calm, busy = conditions(), conditions(client=client(slip=0.5))
    a = loaded("a", conditions(stages={0: calm}), 8.0)
    b = loaded("b", conditions(client=client(slip=0.5), stages={0: busy, 1: calm}), 16.0, 8.0)
    assert other_causes(arm("A", a), arm("B", b)) == ()
    alike = loaded("b", conditions(stages={0: calm, 1: busy}), 16.0, 8.0)
    assert [each.kind for each in other_causes(arm("A", a), arm("B", alike))] == ["client"]
    same = loaded("b", conditions(client=client(slip=0.5)), 8.0)
    assert [each.kind for each in other_causes(arm("A", a), arm("B", same))] == ["client"]
