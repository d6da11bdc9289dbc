"""Compares recordings of two configurations or more."""

from __future__ import annotations

import itertools
import string
from collections.abc import Iterable, Mapping, Sequence

from servetop.analysis.comparison.compared_metrics import COST_METRIC, METRICS, ComparedMetric, metric_named
from servetop.analysis.comparison.comparison import ComparisonOptions
from servetop.analysis.comparison.estimate import CONFIDENCE
from servetop.analysis.comparison.report_types import ComparisonReport
from servetop.analysis.comparison.start_spread import StartSpread
from servetop.analysis.comparison.verdicts import ERROR_RATE
from servetop.analysis.cost.hourly_price import recorded_prices
from servetop.core.config_values.price import HourlyPrice, parse_price
from servetop.core.errors import UsageError
from servetop.core.interfaces.run_source import RunHeader
from servetop.reports.comparison.build_report import arm_comparison
from servetop.reports.comparison.load_comparison import distinct_arms, first_objectives, headers_of, load_measured_run
from servetop.reports.comparison.measured_arm import MeasuredArm
from servetop.reports.comparison.preconditions import check_same_workload


def compare_recordings(
    recordings: Sequence[str],
    *,
    metrics: Sequence[str] = (),
    margins: Mapping[str, float] | None = None,
    start_spread: float | None = None,
    prices: Sequence[str] = (),
    anyway: bool = False,
) -> ComparisonReport:
    """Load recordings and compare the first configuration with each other one.

    Each of `recordings` is a configuration: a recording, several with commas between them, or a folder. `metrics` are
    keys of the summary (all if empty), `margins` the smallest differences to look for, as fractions by key,
    `start_spread` the standard deviation that is assumed between starts, as a fraction, and `prices` those of the
    servers, as in `2.5/h`: one, or one for each configuration. `anyway` compares unlike workloads, with a warning.
    UsageError or RecordingError, in one line, for what cannot be compared.
    """
    if not 2 <= len(recordings) <= len(string.ascii_uppercase):
        raise UsageError("compare needs two configurations or more, as in: servetop compare main.servetop new.servetop")
    arms = _measured_arms(recordings, _prices(prices, len(recordings)), anyway=anyway)
    priced = any(arm.price_per_hour is not None for arm in arms)
    usual = (*METRICS, COST_METRIC) if priced else METRICS
    options = ComparisonOptions(
        metrics=[_known("--metric", key) for key in metrics] or usual,
        margins={_known("--margin", key).key: margin for key, margin in (margins or {}).items()},
        start_spread=None if start_spread is None else StartSpread.everywhere(start_spread),
    )
    check_margins(options.margins, options.metrics)
    return ComparisonReport(
        a=arms[0].summary(),
        error_rate=ERROR_RATE,
        confidence=CONFIDENCE,
        comparisons=tuple(arm_comparison(arms[0], arm, options) for arm in arms[1:]),
    )


def _measured_arms(
    recordings: Sequence[str], hourly: Sequence[HourlyPrice | None], *, anyway: bool
) -> list[MeasuredArm]:
    """Load the recordings of each configuration, at its price or else the recorded one; UsageError for unlike ones."""
    paths = distinct_arms(recordings)
    headers = dict(zip(string.ascii_uppercase, headers_of(paths), strict=False))
    if not anyway:
        check_same_workload(headers["A"], {letter: arm for letter, arm in headers.items() if letter != "A"})
    if not any(hourly):
        _check_currencies(itertools.chain.from_iterable(headers.values()))
    objectives = first_objectives(itertools.chain.from_iterable(headers.values()))
    return [
        MeasuredArm(letter=letter, runs=[load_measured_run(path, objectives=objectives, price=price) for path in arm])
        for letter, arm, price in zip(headers, paths, hourly, strict=True)
    ]


def _prices(texts: Sequence[str], arms: int) -> Sequence[HourlyPrice | None]:
    """Return the price of each configuration, None if none is given; UsageError for what does not fit."""
    parsed = [parse_price(text) for text in texts]
    hourly = [each for each in parsed if isinstance(each, HourlyPrice)]
    if len(hourly) < len(parsed):
        raise UsageError("--price: compare needs prices per hour, as in 2.5/h")
    if len({each.currency for each in hourly}) > 1:
        raise UsageError("--price: give all prices in the same currency")
    if len(hourly) not in (0, 1, arms):
        raise UsageError(f"--price: {len(hourly)} prices: give one for all, or one for each configuration")
    given: list[HourlyPrice | None] = [*hourly] or [None]
    return given if len(given) == arms else given * arms


def _check_currencies(headers: Iterable[RunHeader]) -> None:
    """UsageError for recorded prices that cannot be compared."""
    recorded = [prices.server for header in headers if (prices := recorded_prices(header.config)) is not None]
    first = next((each for each in recorded if each.currency != recorded[0].currency), None)
    if first is not None:
        raise UsageError(
            f"the recorded prices {recorded[0].text} and {first.text} have different currencies: "
            "give --price once for each configuration"
        )


def check_margins(margins: Mapping[str, float], metrics: Sequence[ComparedMetric]) -> None:
    """UsageError for the margin of a metric that is not compared."""
    unused = next((key for key in margins if key not in {metric.key for metric in metrics}), None)
    if unused is not None:
        raise UsageError(f"--margin {unused}: this metric is not compared: leave it out, or give --metric {unused} too")


def _known(option: str, key: str) -> ComparedMetric:
    metric = metric_named(key)
    if metric is None:
        raise UsageError(f"{option} {key}: use one of {', '.join(each.key for each in (*METRICS, COST_METRIC))}")
    return metric
