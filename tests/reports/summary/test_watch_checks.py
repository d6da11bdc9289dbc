"""Thresholds of a watch are judged from its pages, however rare they are."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from servetop.analysis.fleet.watch_thresholds import ThresholdResult, parse_watch_threshold
from servetop.core.events import RunEnd
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.summary.watch_checks import checked_watch, judged_servers
from tests.recorded_watches import watch_of_pages

TTFT = "ttft_p90<500ms"


def judged(path: Path, text: str = TTFT, *, hold: float = 10.0) -> ThresholdResult:
    with closing(RecordingReader.open(path)) as reader:
        ((_, _, found),) = judged_servers(reader, [parse_watch_threshold(text)], hold=hold)
    return found


@pytest.mark.parametrize("every", [1.0, 4.0, 7.0, 15.0, 30.0, 60.0])
def test_a_latency_is_slow_for_as_long_however_rare_the_pages_are(tmp_path: Path, every: float) -> None:
    path = watch_of_pages(tmp_path / "watch.servetop", every=every, seconds=500.0, slow_from=181.0)
    assert judged(path, hold=180.0).broken.startswith("ttft_p90<500ms was broken from ")
    assert judged(path, hold=340.0) == ThresholdResult()
    assert judged(path, "ttft_p90<2s", hold=300.0) == ThresholdResult()


@pytest.mark.parametrize(("quantile", "limit"), [("p50", 750), ("p90", 950), ("p95", 975), ("p99", 995)])
def test_a_quantile_is_interpolated_in_its_bucket(tmp_path: Path, quantile: str, limit: int) -> None:
    """In all ten seconds from second 110 on, requests take between 0.5 and 1 s."""
    path = watch_of_pages(tmp_path / "watch.servetop", every=1.0, seconds=200.0, slow_from=103.0)
    assert judged(path, f"ttft_{quantile}<={limit}ms") == ThresholdResult()
    assert judged(path, f"{quantile}_ttft_ms<={limit - 5}").broken


@pytest.mark.parametrize("every", [15.0, 60.0])
def test_ten_seconds_in_which_a_page_arrives_have_what_it_ends_and_the_next_ones_what_follows(
    tmp_path: Path, every: float
) -> None:
    path = watch_of_pages(tmp_path / "watch.servetop", every=every, seconds=490.0, slow_from=181.0)
    assert judged(path, hold=60.0).broken == "ttft_p90<500ms was broken from 3:10 to the end", "a page is of 3:01"


@pytest.mark.parametrize("every", [1.0, 15.0, 60.0])
def test_the_share_of_failed_requests_is_judged_from_page_to_page(tmp_path: Path, every: float) -> None:
    path = watch_of_pages(tmp_path / "watch.servetop", every=every, seconds=500.0, slow_from=181.0)
    assert judged(path, "error_rate<25%", hold=180.0).broken.startswith("error_rate<25% was broken from 3:")
    assert judged(path, "error_rate<26%") == ThresholdResult()
    assert judged(path, "error_rate<1%", hold=340.0) == ThresholdResult()


def test_a_server_that_does_not_count_its_failures_has_no_error_rate(tmp_path: Path) -> None:
    path = watch_of_pages(tmp_path / "watch.servetop", every=1.0, seconds=60.0, counts_answers=False)
    assert judged(path, "error_rate<1%").undecided == "error_rate<1%: error_rate was not measured"


@pytest.mark.parametrize("text", [TTFT, "output_tokens/s>1"])
def test_one_page_decides_no_latency_and_no_rate(tmp_path: Path, text: str) -> None:
    path = watch_of_pages(tmp_path / "watch.servetop", every=60.0, seconds=50.0, thresholds=(text,))
    assert judged(path, text).undecided == f"{text}: cannot be decided by one metrics page: it needs two"
    assert judged(path, "waiting<10") == ThresholdResult(), "a gauge is known by one"
    with closing(RecordingReader.open(path)) as reader:
        end = checked_watch(reader, RunEnd(at=50.0, exit_code=0, reason=""))
    assert (end.exit_code, end.reason) == (98, f"{text}: cannot be decided by one metrics page: it needs two")


def test_a_silence_of_a_server_that_is_read_each_second_is_not_measured(tmp_path: Path) -> None:
    path = watch_of_pages(tmp_path / "watch.servetop", every=1.0, seconds=120.0, until=31.0)
    assert judged(path, hold=30.0) == ThresholdResult()
    assert judged(path, hold=50.0).undecided == "ttft_p90<500ms: measured for 30 s only, of at least 50 s (--for)"
