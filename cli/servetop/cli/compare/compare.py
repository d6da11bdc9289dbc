"""`servetop compare`: loads the recordings, compares them and prints the report."""

from __future__ import annotations

import itertools
import string
from collections.abc import Iterable, Mapping, Sequence

from servetop.analysis.comparison.compared_metrics import COST_METRIC, METRICS, ComparedMetric, metric_named
from servetop.analysis.comparison.comparison import ComparisonOptions
from servetop.analysis.comparison.start_spread import StartSpread
from servetop.analysis.comparison_report.build_report import comparison_report
from servetop.analysis.comparison_report.preconditions import check_same_workload
from servetop.analysis.comparison_report.report_types import ComparisonReport
from servetop.analysis.cost.hourly_price import recorded_prices
from servetop.analysis.summary.summary_json import plain_object
from servetop.cli.compare.comparison_markdown import markdown_lines
from servetop.cli.compare.comparison_text import comparison_parts
from servetop.cli.options.compare_options import CompareOptions
from servetop.cli.tables import out_tables, stdout_console
from servetop.core.config_values.price import HourlyPrice, parse_price
from servetop.core.errors import ExitCode, UsageError
from servetop.core.interfaces.run_source import RunHeader
from servetop.recordings.comparison.load_comparison import distinct_arms, first_objectives, headers_of, load_arm
from servetop.run import console


def run_compare(options: CompareOptions) -> int:
    """Compare the first configuration with each other one; OK, whatever the result."""
    if options.as_json and options.markdown:
        raise UsageError("--json and --markdown exclude each other: give one of them")
    report = report_of(options)
    if options.as_json:
        console.out_json(plain_object(report))
    elif options.markdown:
        console.out(*markdown_lines(report))
    else:
        out_tables(*comparison_parts(report, width=stdout_console().width))
    return int(ExitCode.OK)


def report_of(options: CompareOptions) -> ComparisonReport:
    """Load the recordings and compare them; UsageError or RecordingError, in one line, for what cannot be compared."""
    if not 2 <= len(options.recordings) <= len(string.ascii_uppercase):
        raise UsageError("compare needs two configurations or more, as in: servetop compare main.servetop new.servetop")
    assumed = options.start_spread
    prices = _prices(options)
    paths = distinct_arms(options.recordings)
    headers = dict(zip(string.ascii_uppercase, headers_of(paths), strict=False))
    if not options.anyway:
        check_same_workload(headers["A"], {letter: arm for letter, arm in headers.items() if letter != "A"})
    if not prices:
        _check_currencies(itertools.chain.from_iterable(headers.values()))
    objectives = first_objectives(itertools.chain.from_iterable(headers.values()))
    arms = [load_arm(letter, arm, objectives=objectives) for letter, arm in zip(headers, paths, strict=True)]
    arms = [arm.with_price(price) for arm, price in zip(arms, prices, strict=True)] if prices else arms
    priced = any(arm.price_per_hour is not None for arm in arms)
    metrics = metrics_named(options.metric) or (*METRICS, *([COST_METRIC] if priced else []))
    margins = _margins(options.margin or {})
    check_margins(margins, metrics)
    chosen = ComparisonOptions(
        metrics=metrics,
        margins=margins,
        start_spread=None if assumed is None else StartSpread.everywhere(assumed),
    )
    return comparison_report(arms[0], arms[1:], chosen)


def _prices(options: CompareOptions) -> list[HourlyPrice]:
    """The price of each configuration; none if none is given. UsageError for what does not fit."""
    parsed = [parse_price(text) for text in options.price]
    hourly = [each for each in parsed if isinstance(each, HourlyPrice)]
    if len(hourly) < len(parsed):
        raise UsageError("--price: compare needs prices per hour, as in 2.5/h")
    if len({each.currency for each in hourly}) > 1:
        raise UsageError("--price: give all prices in the same currency")
    if len(hourly) not in (0, 1, len(options.recordings)):
        raise UsageError(f"--price: {len(hourly)} prices: give one for all, or one for each configuration")
    return hourly * len(options.recordings) if len(hourly) == 1 else hourly


def _check_currencies(headers: Iterable[RunHeader]) -> None:
    """UsageError for recorded prices that cannot be compared."""
    recorded = [prices.server for header in headers if (prices := recorded_prices(header.config)) is not None]
    first = next((each for each in recorded if each.currency != recorded[0].currency), None)
    if first is not None:
        raise UsageError(
            f"the recorded prices {recorded[0].text} and {first.text} have different currencies: "
            "give --price once for each configuration"
        )


def metrics_named(keys: Sequence[str]) -> tuple[ComparedMetric, ...]:
    """Return the metrics with these keys; UsageError for an unknown one."""
    return tuple(_known("--metric", key) for key in keys)


def _margins(margins: Mapping[str, float]) -> dict[str, float]:
    return {_known("--margin", key).key: margin for key, margin in margins.items()}


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
