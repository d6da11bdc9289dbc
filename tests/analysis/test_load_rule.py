"""Whether the load that arrived is named as another cause, where it differs at one nominal rate."""

import dataclasses
import math

import numpy as np

from servetop.analysis.cells.stage_load import StageLoad
from servetop.analysis.comparison.alignment import ArmRun
from servetop.analysis.comparison.stage_sample import StageSample
from servetop.analysis.confounding.load_rule import load_confounder
from servetop.reports.comparison.other_causes import other_causes
from tests.analysis.comparison.samples import stage
from tests.analysis.measured_arms import arm, run

NOMINAL = StageLoad(request_rate=8.0)


def arrived(rate: float, *, seed: int, load: StageLoad = NOMINAL) -> StageSample:
    return stage(rate=rate, seconds=100.0, seed=seed, load=load)


def test_other_numbers_of_requests_at_one_nominal_rate_are_named_with_their_figures() -> None:
    found = load_confounder(arrived(7.0, seed=1), arrived(8.4, seed=2))
    assert found is not None
    assert found.text.startswith("700 requests in 100 s of A and 840 in 100 s of B arrived at one nominal rate")
    assert "8 req/s: +20.0% requests and +20.0% tokens per second" in found.text
    assert found.evidence["requests per second"] == (7.0, 8.4)
    assert load_confounder(arrived(8.0, seed=1), arrived(8.2, seed=2)) is None


def test_longer_requests_bring_more_load_unless_their_lengths_are_already_named() -> None:
    first, second = arrived(8.0, seed=1), arrived(8.0, seed=2)
    longer = dataclasses.replace(second, output_tokens=np.full(800, 80.0))
    found = load_confounder(first, longer)
    assert found is not None
    assert "+0.0% requests and +23.8% tokens per second" in found.text
    assert load_confounder(first, longer, tokens=False) is None


def test_equal_requests_and_closed_loops_have_no_load_of_their_own() -> None:
    first = arrived(8.0, seed=1)
    shorter = dataclasses.replace(first, until=first.until - 30.0, number=first.number)
    assert load_confounder(first, shorter) is None
    loop = StageLoad(request_rate=math.inf, max_concurrency=8)
    assert load_confounder(arrived(7.0, seed=1, load=loop), arrived(8.4, seed=2, load=loop)) is None


def test_a_comparison_names_the_load_of_a_common_stage() -> None:
    a, b = (
        run(name, arm=ArmRun(name=name, stages=[arrived(rate, seed=seed)]))
        for name, rate, seed in (("a", 7.0, 1), ("b", 8.4, 2))
    )
    (cause,) = other_causes(arm("A", a), arm("C", b))
    assert cause.kind == "load"
    assert "840 in 100 s of C" in cause.text
    assert other_causes(arm("A", a), arm("B", a)) == ()
