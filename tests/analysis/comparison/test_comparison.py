"""Whole comparisons of hand-made runs."""

import pytest

from servetop.analysis.comparison.compared_metrics import metric_named
from servetop.analysis.comparison.comparison import ComparisonOptions, compare
from servetop.analysis.comparison.undecided import UndecidedReason
from servetop.analysis.comparison.verdicts import Verdict
from tests.analysis.comparison.samples import run, stage


def test_a_run_compared_with_itself_shows_no_difference() -> None:
    a = run("a", stage(rate=40.0))
    (found,) = compare([a], [run("b", stage(rate=40.0))]).stages
    assert found.same_requests
    assert {each.verdict for each in found.metrics} == {Verdict.NO_DIFFERENCE}


def test_a_slower_first_token_is_worse_and_nothing_else() -> None:
    a, b = run("a", stage(rate=40.0)), run("b", stage(rate=40.0, noise=5, ttft=0.23))
    comparison = compare([a], [b])
    metrics = [each for stage in comparison.stages for each in stage.metrics]
    worse = {each.key for each in metrics if each.verdict is Verdict.WORSE}
    assert {"mean_ttft_ms", "p50_ttft_ms", "p90_ttft_ms"} <= worse
    assert not [each for each in metrics if each.verdict is Verdict.BETTER]
    (found,) = comparison.stages
    throughput = found.metric("output_throughput")
    assert throughput is not None
    assert throughput.verdict is Verdict.NO_DIFFERENCE


def test_equal_requests_tell_a_difference_that_other_seeds_cannot() -> None:
    metric = metric_named("mean_ttft_ms")
    assert metric is not None
    options = ComparisonOptions(metrics=[metric])
    a = run("a", stage(rate=8.0))
    verdicts = []
    for b in (stage(rate=8.0, noise=5, ttft=0.206), stage(rate=8.0, seed=2, ttft=0.206)):
        ((found,),) = (each.metrics for each in compare([a], [run("b", b)], options).stages)
        verdicts.append(found)
    assert verdicts[0].verdict is Verdict.WORSE
    assert verdicts[1].verdict is Verdict.CANNOT_TELL
    assert verdicts[1].more_seconds is not None
    assert verdicts[1].more_seconds > 100


def test_single_starts_of_a_real_engine_cannot_show_a_small_loss_and_ask_for_starts() -> None:
    a = run("a", stage(rate=40.0), start_spread=0.01)
    b = run("b", stage(rate=40.0, tokens_per_second=975.0), start_spread=0.01)
    (found,) = compare([a], [b]).stages
    throughput = found.metric("output_throughput")
    assert throughput is not None
    assert throughput.verdict is Verdict.CANNOT_TELL
    assert throughput.more_starts is not None
    assert throughput.more_starts > 0


@pytest.mark.parametrize("options", [ComparisonOptions(), ComparisonOptions(names=("the baseline", "the run"))])
@pytest.mark.parametrize("lacking", [0, 1])
def test_a_metric_that_one_side_lacks_is_said(options: ComparisonOptions, lacking: int) -> None:
    sides = (stage(), stage())
    object.__setattr__(sides[lacking], "counters", {})
    (found,) = compare([run("a", sides[0])], [run("b", sides[1])], options).stages
    throughput = found.metric("output_throughput")
    assert throughput is not None
    assert throughput.note == f"not measured in {options.names[lacking]}"
    assert (throughput.verdict, throughput.reason) == (Verdict.CANNOT_TELL, UndecidedReason.NOT_MEASURED)


def test_margins_can_be_set() -> None:
    a, b = run("a", stage(rate=40.0)), run("b", stage(rate=40.0, tokens_per_second=960.0))
    (found,) = compare([a], [b], ComparisonOptions(margins={"output_throughput": 0.2})).stages
    throughput = found.metric("output_throughput")
    assert throughput is not None
    assert throughput.verdict is Verdict.NO_DIFFERENCE
    assert throughput.margin == pytest.approx(0.2)


def test_a_percentile_beyond_the_sample_of_one_of_several_starts_cannot_be_compared() -> None:
    metric = metric_named("p99_ttft_ms")
    assert metric is not None
    short = stage(rate=0.4)
    a = [run("a1", short), run("a2", short)]
    (found,) = compare(a, [run("b", short)], ComparisonOptions(metrics=[metric])).stages
    assert [(each.verdict, each.note, each.difference) for each in found.metrics] == [
        (Verdict.CANNOT_TELL, "too few values", None)
    ]
