"""The judges of comparisons: what they draw, and what they count."""

import math
from random import Random

from servetop.analysis.comparison.compared_metrics import Family
from servetop.analysis.comparison.verdicts import Verdict
from tests.comparisons.changed_engine import Answers, Change, find_change
from tests.comparisons.drawn_runs import draw_load, measured
from tests.comparisons.load_shapes import LoadShape
from tests.comparisons.same_engine import Setting, compare_same
from tests.comparisons.tables import change_table, same_table


def test_equal_engines_with_equal_seeds_show_no_difference() -> None:
    tally = compare_same(Setting(name="equal seeds", same_seed=True), seed=7, pairs=1)
    assert tally.pairs == 1
    assert not tally.alarms
    assert tally.covered == tally.intervals
    assert same_table({"equal seeds": tally})[2].startswith("| equal seeds: pairs with a false alarm | 1 | 0.0% |")


def test_a_slower_engine_is_found_with_equal_seeds() -> None:
    change = Change(name="half as fast", metric="output_throughput", slower=2.0, same_seed=True)
    answers = find_change(change, seed=7, cases=1)
    assert answers.final == {Verdict.WORSE: 1}
    assert "| half as fast | 1 | 100.0% | 100.0% |" in change_table({"half as fast": answers})[2]


def test_a_slower_engine_takes_longer_for_everything() -> None:
    load = draw_load(Random(5), closed=True)
    usual, slow = (measured(load.plan(1, slower=each, seconds=20.0), "run") for each in (1.0, 2.0))
    first, second = (run.stages[0].latencies["tpot"].mean() for run in (usual, slow))
    assert 1.9 < second / first < 2.1


def test_shaped_loads_are_open_and_have_lengths_or_arrivals_of_their_shape() -> None:
    loads = {shape: draw_load(Random(3), shape=shape) for shape in LoadShape}
    assert all(math.isfinite(load.stage.request_rate) for load in loads.values())
    assert loads[LoadShape.WIDE].base.workload.lengths.startswith("lognormal:input_sigma=1.")
    assert 0.2 <= loads[LoadShape.BURSTY].base.workload.burstiness <= 0.4
    assert loads[LoadShape.SINUSOID].base.workload.arrivals.startswith("sinusoid:")
    assert loads[LoadShape.SHORT].stage.duration == 20.0
    (run,) = (measured(load.plan(1), "run") for shape, load in loads.items() if shape is LoadShape.SHORT)
    assert run.stages[0].due.size > 0


def test_costs_and_families_are_counted() -> None:
    answers = Answers(seconds=[60.0, 120.0, 90.0], starts=[1, 1, 1])
    assert answers.cost == "1 × 90 s"
    assert len(Family) == 8
