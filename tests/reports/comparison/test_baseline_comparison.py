"""A run beside its baseline, for a screen."""

from __future__ import annotations

import pytest

from servetop.analysis.confounding.conditions import KvSize
from servetop.reports.comparison.baseline_comparison import cause_texts, compare_with_baseline
from tests.analysis.measured_arms import run
from tests.analysis.measured_conditions import client, conditions
from tests.reports.comparison.test_other_causes import loaded


def test_causes_name_the_baseline_and_the_run() -> None:
    smaller = run("b", conditions=conditions(kv=KvSize(blocks=500.0, block_size=16)))
    found = compare_with_baseline(run("a"), smaller)
    (cause,) = found.causes
    assert cause.startswith("kv size: the KV cache holds 8,000 tokens in the run and 16,000 in the baseline")
    assert not found.stages


@pytest.mark.parametrize(("over", "causes"), [(1, 0), (2, 1)])
def test_conditions_of_a_stage_that_is_not_compared_are_no_cause(over: int, causes: int) -> None:
    calm, busy = conditions(), conditions(client=client(slip=0.5))
    baseline = loaded("a", conditions(stages={0: calm, 1: calm}), 8.0, 16.0)
    live = loaded("b", conditions(client=client(slip=0.5), stages={0: calm, 1: busy}), *(8.0, 16.0)[:over])
    assert len(cause_texts(baseline, live)) == causes
