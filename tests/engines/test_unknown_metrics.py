"""Metrics of an unknown engine: by the names and types of its page, bounded, and without a meaning."""

from __future__ import annotations

import pytest

from servetop.analysis.exported.metric_spec import MOST_SPECS, MetricKind, Unit, specs_from
from servetop.analysis.exported.metric_values import metric_values, periods_between
from servetop.analysis.exported.scrape_history import ScrapeHistory
from servetop.core.config import to_data
from servetop.core.interfaces.series_scrape import MAX_SERIES
from servetop.engines.metrics.series_collector import SeriesCollector, SeriesPacker
from servetop.engines.metrics.unknown_metrics import (
    MOST_METRICS,
    MOST_SHOWN_LABELS,
    UnknownMetrics,
    unknown_specs,
)

PAGE = """\
# HELP process_open_fds Open files.
# TYPE process_open_fds gauge
process_open_fds 12
# TYPE acme_requests_running gauge
acme_requests_running{{gpu="0",kind="a"}} 3
acme_requests_running{{gpu="1",kind="a"}} 4
# TYPE acme_tokens counter
acme_tokens_total{{kind="prompt"}} {prompt}
acme_tokens_total{{kind="output"}} {output}
# TYPE acme_ttft_seconds histogram
acme_ttft_seconds_bucket{{le="0.1"}} {fast}
acme_ttft_seconds_bucket{{le="0.5"}} {all}
acme_ttft_seconds_bucket{{le="+Inf"}} {all}
acme_ttft_seconds_sum 4
acme_ttft_seconds_count {all}
# TYPE acme_batch summary
acme_batch{{quantile="0.5"}} 3
acme_batch_sum {fast}
acme_batch_count {all}
acme_untyped 7
"""


def page(**values: int) -> bytes:
    return PAGE.format(**values).encode()


FIRST = page(prompt=100, output=10, fast=0, all=0)
SECOND = page(prompt=160, output=30, fast=90, all=100)


def test_each_metric_is_shown_by_its_own_name_with_labels_added_or_apart() -> None:
    specs = unknown_specs(FIRST)
    history, packer, collector = ScrapeHistory(), SeriesPacker(), SeriesCollector(specs)
    for at, each in ((10.0, FIRST), (20.0, SECOND)):
        collector.collect({"/metrics": each}, at=at)
        reading = collector.take()
        assert reading is not None
        history.extend([packer.pack(reading)])
    values = {
        f"{each.spec.name} {each.label}".strip(): (float(each.values[-1]), each.spec.unit)
        for each in metric_values(specs, periods_between(history, [0, 1]))
    }
    assert values == {
        "acme_ttft_seconds": (pytest.approx(0.1 * 50 / 90), Unit.SECONDS),
        "acme_ttft_seconds p99": (pytest.approx(0.1 + 0.4 * 9 / 10), Unit.SECONDS),
        "acme_ttft_seconds count": (10.0, Unit.PER_SECOND),
        "acme_batch mean": (0.9, Unit.NUMBER),
        "acme_batch count": (10.0, Unit.PER_SECOND),
        "acme_tokens": (8.0, Unit.PER_SECOND),
        "acme_requests_running gpu: 0": (3.0, Unit.NUMBER),
        "acme_requests_running gpu: 1": (4.0, Unit.NUMBER),
        "acme_untyped": (7.0, Unit.NUMBER),
        "process_open_fds": (12.0, Unit.NUMBER),
    }


def test_a_page_of_ten_thousand_series_is_bounded_and_survives_the_recording() -> None:
    rows = [f'# TYPE h{n}_seconds histogram\n' + "".join(
        f'h{n}_seconds_bucket{{le="{bound}"}} 1\n' for bound in range(80)) for n in range(60)]  # fmt: skip
    rows += [f"# TYPE g{n} gauge\n" + "".join(f'g{n}{{pod="p{pod}"}} 1\n' for pod in range(60)) for n in range(90)]
    text = "".join(rows).encode()
    assert text.count(b"\n") > 10_000
    specs = unknown_specs(text)
    assert len({each.series[0].removesuffix("_count") for each in specs}) == MOST_METRICS
    assert specs_from([to_data(each) for each in specs]) == specs
    assert len(specs) <= MOST_SPECS
    collector = SeriesCollector(specs)
    collector.collect({"/metrics": text}, at=1.0)
    reading = collector.take()
    assert reading is not None
    assert len(reading.values) < MAX_SERIES
    (many,) = [each for each in specs if each.series == ("g0",)]
    assert (many.name, many.by, reading.values["g0"]) == ("g0, sum of 60", "", 60.0)
    assert MOST_SHOWN_LABELS < 60


@pytest.mark.parametrize(
    "text",
    [b"", b"<html>it works</html>", b'{"a": 1}', b"\x00\xff\xfe binary", b"# TYPE x gauge\n", b"no value here\n"],
)
def test_a_page_without_metrics_has_none(text: bytes) -> None:
    assert unknown_specs(text) == ()
    if b"value" not in text:
        assert UnknownMetrics("/metrics").sample({"/metrics": text}, start=0.0, end=1.0) is None


def test_names_that_prometheus_does_not_allow_are_left_out() -> None:
    text = 'ok_gauge 1\n\x1b[31mred 1\nn{"\x1b[2J"="x"} 1\n' + "x" * 500 + " 1\n"
    assert [each.name for each in unknown_specs(text.encode())] == ["ok_gauge", "n"]


def test_a_sample_says_that_the_page_was_read_and_has_no_values() -> None:
    reader = UnknownMetrics("/metrics")
    sample = reader.sample({"/metrics": FIRST}, start=1.0, end=1.5)
    assert sample is not None
    assert (sample.scrape_start, sample.scrape_end, sample.running) == (1.0, 1.5, None)
    assert "running" in reader.missing({"/metrics": FIRST})
    assert reader.facts({"/metrics": FIRST}).max_num_seqs is None


def test_times_of_day_are_no_durations() -> None:
    text = b"acme_last_reload_timestamp_seconds 1.7e9\nacme_step_seconds 0.2\nacme_cache_bytes 5\n"
    assert [each.unit for each in unknown_specs(text)] == [Unit.NUMBER, Unit.SECONDS, Unit.BYTES]
    assert all(each.kind is MetricKind.GAUGE for each in unknown_specs(text))
