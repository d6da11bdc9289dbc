"""Values of the engine page's metrics over periods between scrapes, computed by hand."""

from __future__ import annotations

import json
import math

import pytest

from servetop.analysis.exported.metric_spec import MetricKind, MetricSpec, Unit, specs_from
from servetop.analysis.exported.metric_values import ExportedValue, metric_values, periods_between, whole_period
from servetop.analysis.exported.scrape_history import ScrapeHistory
from servetop.core.config import to_data
from servetop.core.interfaces.series_scrape import SeriesScrape, pack_numbers


def spec(kind: MetricKind, *series: str, of: str = "", by: str = "", unit: Unit = Unit.NUMBER) -> MetricSpec:
    return MetricSpec(group="G", name="n", kind=kind, series=series, of=(of,) if of else (), by=by, unit=unit)


def test_a_recorded_table_is_read_back_without_what_is_damaged_or_newer() -> None:
    good = [spec(MetricKind.RATIO, "hits", of="lookups", unit=Unit.SHARE), spec(MetricKind.GAUGE, "usage", by="pool")]
    rows = json.loads(json.dumps(to_data(good)))
    newer, damaged = {**rows[0], "kind": "forecast"}, {**rows[0], "series": "hits"}
    ratio_of_one, nameless = {**rows[0], "of": []}, {**rows[1], "series": []}
    further = {**rows[1], "colour": "red"}
    assert specs_from([rows[0], newer, damaged, ratio_of_one, nameless, {}, further]) == tuple(good)


def history(*rows: tuple[float, dict[str, float]]) -> ScrapeHistory:
    scrapes = ScrapeHistory()
    scrapes.extend(
        SeriesScrape(at=at, names="\n".join(values), numbers=pack_numbers(values.values())) for at, values in rows
    )
    return scrapes


def of_one_period(metric: MetricSpec, *rows: tuple[float, dict[str, float]]) -> list[ExportedValue]:
    scrapes = history(*rows)
    return metric_values([metric], periods_between(scrapes, [0, len(rows) - 1]))


def test_a_rate_is_the_increase_per_second_between_the_scrapes() -> None:
    (value,) = of_one_period(
        spec(MetricKind.RATE, "done"), (10.0, {"done_total": 100.0}), (14.0, {"done_total": 130.0})
    )
    assert (value.values.tolist(), value.source, value.label) == ([7.5], "done_total", "")


def test_a_counter_that_fell_was_reset_and_a_new_one_began_at_0() -> None:
    rate = spec(MetricKind.RATE, "done", by="reason")
    values = of_one_period(
        rate, (0.0, {"done{reason=stop}": 100.0}), (2.0, {"done{reason=stop}": 8.0, "done{reason=abort}": 3.0})
    )
    assert {value.label: value.values.tolist() for value in values} == {"stop": [4.0], "abort": [1.5]}


def test_a_ratio_is_that_of_the_increases_not_of_the_counters() -> None:
    metric = spec(MetricKind.RATIO, "hits", of="queries", unit=Unit.SHARE)
    (value,) = of_one_period(metric, (0.0, {"hits": 90.0, "queries": 100.0}), (1.0, {"hits": 100.0, "queries": 140.0}))
    assert value.values.tolist() == [0.25]


def test_a_ratio_by_label_divides_each_by_the_same_counter() -> None:
    metric = spec(MetricKind.RATIO, "accepted", of="drafts", by="position")
    before = {"accepted{position=0}": 0.0, "accepted{position=10}": 0.0, "accepted{position=2}": 0.0, "drafts": 0.0}
    after = {"accepted{position=0}": 8.0, "accepted{position=10}": 1.0, "accepted{position=2}": 4.0, "drafts": 10.0}
    values = of_one_period(metric, (0.0, before), (1.0, after))
    assert [(value.label, value.values.tolist()) for value in values] == [("0", [0.8]), ("2", [0.4]), ("10", [0.1])]


def test_a_mean_is_unknown_while_nothing_was_observed() -> None:
    rows = [
        (at, {"size_sum": total, "size_count": count})
        for at, total, count in [(0.0, 10.0, 2.0), (1.0, 10.0, 2.0), (2.0, 70.0, 5.0)]
    ]
    scrapes = history(*rows)
    (value,) = metric_values([spec(MetricKind.MEAN, "size")], periods_between(scrapes, [0, 1, 2]))
    assert math.isnan(value.values[0])
    assert value.values[1] == 20.0


def test_quantiles_are_interpolated_within_the_bucket_as_prometheus_does() -> None:
    bounds = ["0.1", "0.2", "0.4", "+Inf"]
    before = {f"t_bucket{{le={bound}}}": 5.0 for bound in bounds}
    after = {f"t_bucket{{le={bound}}}": 5.0 + count for bound, count in zip(bounds, (2, 6, 10, 10), strict=True)}
    (value,) = of_one_period(spec(MetricKind.QUANTILES, "t"), (0.0, before), (1.0, after))
    assert value.p90 is not None
    assert value.values[0] == pytest.approx(0.1 + 0.1 * 3 / 4)  # the 5th of 10: 3 of the 4 in (0.1, 0.2]
    assert value.p90[0] == pytest.approx(0.2 + 0.2 * 3 / 4)  # the 9th
    assert value.first_bound == 0.1


@pytest.mark.parametrize(
    ("counts", "bucket"),
    [
        ((0, 9, 9, 9), [1.0, 2.0]),
        ((9, 9, 9, 9), [0.0, 1.0]),
        ((0, 0, 0, 9), [5.0, math.inf]),
        ((0, 1, 9, 9), [2.0, 5.0]),
        ((0, 5, 9, 9), [math.nan, math.nan]),
        ((0, 0, 0, 0), [math.nan, math.nan]),
    ],
)
def test_the_bucket_that_contains_both_quantiles_is_known(counts: tuple[int, ...], bucket: list[float]) -> None:
    names = [f"t_bucket{{le={bound}}}" for bound in ("1", "2", "5", "+Inf")]
    rows = [(0.0, dict.fromkeys(names, 0.0)), (1.0, dict(zip(names, map(float, counts), strict=True)))]
    (value,) = of_one_period(spec(MetricKind.QUANTILES, "t"), *rows)
    assert value.buckets is not None
    assert value.buckets[-1].tolist() == pytest.approx(bucket, nan_ok=True)


def test_a_first_bucket_of_0_is_not_the_resolution() -> None:
    rows = [(at, {"t_bucket{le=0.0}": 0.0, "t_bucket{le=0.1}": at, "t_bucket{le=+Inf}": at}) for at in (0.0, 1.0)]
    (value,) = of_one_period(spec(MetricKind.QUANTILES, "t"), *rows)
    assert value.first_bound == 0.1


def test_a_quantile_beyond_the_last_bound_is_that_bound() -> None:
    before, after = {"t_bucket{le=1}": 0.0, "t_bucket{le=+Inf}": 0.0}, {"t_bucket{le=1}": 1.0, "t_bucket{le=+Inf}": 9.0}
    (value,) = of_one_period(spec(MetricKind.QUANTILES, "t"), (0.0, before), (1.0, after))
    assert value.values.tolist() == [1.0]


def test_a_gauge_is_the_newest_value_and_a_share_is_averaged_over_the_ranks() -> None:
    rows = [(at, {"used{engine=0}": first, "used{engine=1}": 0.5}) for at, first in [(0.0, 0.1), (1.0, 0.7)]]
    sums, shares = (
        of_one_period(spec(MetricKind.GAUGE, "used", unit=unit), *rows)[0] for unit in (Unit.NUMBER, Unit.SHARE)
    )
    assert sums.values[0] == pytest.approx(1.2)
    assert shares.values[0] == pytest.approx(0.6)


def test_ranks_are_listed_only_where_there_are_several() -> None:
    by_rank = spec(MetricKind.GAUGE, "running", by="engine")
    imbalance = spec(MetricKind.IMBALANCE, "tokens", unit=Unit.TIMES)
    one = {"running{engine=0}": 3.0, "tokens{engine=0}": 100.0}
    two = {**one, "running{engine=1}": 5.0, "tokens{engine=1}": 100.0}
    grown = {**two, "tokens{engine=0}": 130.0, "tokens{engine=1}": 110.0}
    for metric in (by_rank, imbalance):
        assert of_one_period(metric, (0.0, one), (1.0, one)) == []
    assert [value.label for value in of_one_period(by_rank, (0.0, two), (1.0, two))] == ["0", "1"]
    assert of_one_period(imbalance, (0.0, two), (1.0, grown))[0].values.tolist() == [1.5]  # 30 / mean of 30 and 10


def test_the_ranks_of_several_servers_are_told_apart() -> None:
    rows = {"running{engine=0,replica=0}": 3.0, "running{engine=0,replica=1}": 5.0}
    values = of_one_period(spec(MetricKind.GAUGE, "running", by="engine"), (0.0, rows), (1.0, rows))
    assert [(value.label, value.values.tolist()) for value in values] == [("0/0", [3.0]), ("1/0", [5.0])]


def test_the_first_name_found_is_used_and_a_metric_without_its_series_is_left_out() -> None:
    rows = [(0.0, {"older": 1.0, "newer": 5.0}), (1.0, {"older": 2.0, "newer": 9.0})]
    (value,) = of_one_period(spec(MetricKind.RATE, "newer", "older"), *rows)
    assert (value.source, value.values.tolist()) == ("newer", [4.0])
    assert of_one_period(spec(MetricKind.RATIO, "older", of="absent"), *rows) == []


def test_the_whole_run_adds_up_the_increases_between_resets_and_averages_gauges() -> None:
    rows = [(at, {"done": done, "waiting": at}) for at, done in [(0.0, 50.0), (1.0, 60.0), (2.0, 3.0), (4.0, 8.0)]]
    values = metric_values(
        [spec(MetricKind.RATE, "done"), spec(MetricKind.GAUGE, "waiting")], whole_period(history(*rows), -math.inf)
    )
    assert [value.values.tolist() for value in values] == [[18.0 / 4.0], [pytest.approx(7.0 / 3.0)]]


def test_a_long_run_adds_up_across_the_blocks_in_which_it_is_read() -> None:
    scrapes = history(*((float(at), {"done": 3.0 * at, "waiting": 2.0}) for at in range(1203)))
    values = metric_values(
        [spec(MetricKind.RATE, "done"), spec(MetricKind.GAUGE, "waiting")], whole_period(scrapes, start=100.5)
    )
    assert [value.values.tolist() for value in values] == [[3.0], [2.0]]


def test_an_unreadable_scrape_leaves_a_gap_and_no_increase() -> None:
    scrapes = history((0.0, {"done": 50.0}))
    scrapes.extend([SeriesScrape(at=1.0, numbers=b"damaged"), SeriesScrape(at=2.0, numbers=pack_numbers([60.0]))])
    (value,) = metric_values([spec(MetricKind.RATE, "done")], periods_between(scrapes, [0, 1, 2]))
    assert [math.isnan(each) for each in value.values] == [True, True]
