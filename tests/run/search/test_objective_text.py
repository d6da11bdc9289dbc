"""Objectives as people write them."""

from __future__ import annotations

import pytest

from servetop.core.errors import ExitCode, UsageError
from servetop.run.search.objective_text import objective_label, parse_objective, parse_tiers


@pytest.mark.parametrize(
    ("text", "metric", "limit", "share", "label"),
    [
        ("p99_ttft<500ms", "ttft", 0.5, 0.99, "p99 TTFT ≤ 500 ms"),
        ("p95_tpot<=50ms", "tpot", 0.05, 0.95, "p95 TPOT ≤ 50 ms"),
        ("ttft<1.5s@95%", "ttft", 1.5, 0.95, "TTFT ≤ 1.5 s for 95 %"),
        ("E2EL < 2s @ 0.9", "e2el", 2.0, 0.9, "E2EL ≤ 2 s for 90 %"),
        ("p99.9_itl<1s", "itl", 1.0, 0.999, "p99.9 ITL ≤ 1 s"),
        ("error_rate<1%", "error_rate", None, 0.99, "errors ≤ 1 %"),
        ("goodput>95%", "goodput", None, 0.95, "goodput ≥ 95 %"),
        ("mean_itl<=20ms", "itl", 0.02, 0.0, "mean ITL ≤ 20 ms"),
    ],
)
def test_an_objective_is_read(text: str, metric: str, limit: float | None, share: float, label: str) -> None:
    found = parse_objective(text)
    assert (found.text, found.metric, found.limit) == (text, metric, limit)
    assert found.share == pytest.approx(share)
    assert objective_label(found) == label


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("p99_ttft<500", "500 of what? write 500ms or 500s"),
        ("p99_ttft<fast", "'fast' is not a time above 0: write 500ms or 0.5s"),
        ("p99_ttft<nan", "'nan' is not a time above 0"),
        ("p99_ttft<0ms", "'0ms' is not a time above 0"),
        ("p999_ttft<500ms", "p999 is beyond p100: write p99.9 or p99"),
        ("pfoo_ttft<500ms", "'pfoo' is not a percentile or mean in front of the metric: write p99_ttft<500ms"),
        ("median_ttft<500ms", "write p50_ttft<500ms"),
        ("ttft_p90<500ms", "'p90' is not a percentile or mean in front of the metric: write p90_ttft<500ms"),
        ("ttft_ms<500", "no metric 'ttft_ms': did you mean ttft?"),
        ("error_rate<1", "1 of what? write 1%"),
        ("ttft<500ms@95", "95 of what? write 95%"),
        ("p99_tftt<500ms", "did you mean ttft?"),
        ("p99_colour<500ms", "use ttft, tpot, itl, e2el, error_rate or goodput"),
        ("ttft<500ms", "which requests? write p99_ttft<500ms or ttft<500ms@95%"),
        ("p99_ttft<500ms@95%", "has two shares"),
        ("mean_ttft<500ms@95%", "a mean has no share: use mean_ttft<500ms or ttft<500ms@99%"),
        ("mean_ttft<500", "500 of what? write 500ms or 500s"),
        ("mean_ttft>500ms", "asks for a slow server: use mean_ttft<500ms"),
        ("mean_error_rate<1%", "error_rate has no percentile or mean"),
        ("ttft_mean<500ms", "write mean_ttft<500ms"),
        ("avg_ttft<500ms", "write mean_ttft<500ms"),
        ("p99_ttft>500ms", "asks for a slow server: use p99_ttft<500ms"),
        ("p100_ttft<500ms", "cannot be measured"),
        ("ttft<500ms@most", "'most' is not a share"),
        ("error_rate>1%", "use error_rate<1%"),
        ("goodput<95%", "use goodput>95%"),
        ("error_rate<0%", "cannot be measured"),
        ("p99_goodput>95%", "no percentile or mean"),
        ("quick", "is not an objective: use p99_ttft<500ms"),
    ],
)
def test_an_error_says_what_to_write(text: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_objective(text)
    assert hint in str(caught.value)
    assert caught.value.exit_code is ExitCode.USAGE
    assert "\n" not in str(caught.value)


def test_a_space_before_the_unit_is_ignored() -> None:
    assert parse_objective("p99_ttft < 500 ms").limit == 0.5


def test_tiers_share_their_objectives() -> None:
    tiers = parse_tiers(["p99_ttft<500ms, p99_itl<50ms", "p99_ttft<500ms"], goodput={})
    assert [each.text for each in tiers.objectives] == ["p99_ttft<500ms", "p99_itl<50ms"]
    assert tiers.members == ((0, 1), (0,))


@pytest.mark.parametrize(
    ("texts", "hint"),
    [
        ([], "a search needs an objective: add --slo"),
        ([" , "], "has no objective"),
        (["p99_ttft<500ms, p99_ttft<400ms"], "limit the same thing"),
        (["error_rate<1%, error_rate<2%"], "limit the same thing"),
        (["p99_ttft<500ms", "p99_ttft<500ms"], "are given twice"),
        (["goodput>95%"], "add --goodput"),
    ],
)
def test_tiers_that_contradict_each_other_are_refused(texts: list[str], hint: str) -> None:
    with pytest.raises(UsageError, match=hint):
        parse_tiers(texts, goodput={})


def test_goodput_needs_the_objectives_of_requests() -> None:
    assert parse_tiers(["goodput>95%"], goodput={"ttft": 0.5}).members == ((0,),)


def test_beside_a_mean_few_requests_may_fail() -> None:
    tiers = parse_tiers(
        ["mean_ttft<200ms, mean_tpot<20ms", "mean_ttft<200ms, error_rate<5%", "p99_ttft<1s"], goodput={}
    )
    assert [each.text for each in tiers.objectives] == [
        "mean_ttft<200ms",
        "mean_tpot<20ms",
        "error_rate<1%",
        "error_rate<5%",
        "p99_ttft<1s",
    ]
    assert tiers.members == ((0, 1, 2), (0, 3), (4,))
    assert [each.mean for each in tiers.objectives] == [True, True, False, False, False]


def test_a_mean_and_a_percentile_of_one_metric_are_kept_together() -> None:
    assert len(parse_tiers(["mean_ttft<200ms, p99_ttft<1s"], goodput={}).members[0]) == 3
    with pytest.raises(UsageError, match="limit the same thing"):
        parse_tiers(["mean_ttft<200ms, mean_ttft<300ms"], goodput={})
