"""Costs in the summary of a recording: those of the throughput beside them, with intervals in a steady state."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path

import pytest

from servetop.analysis.summary.summary_types import RunSummary
from servetop.core.config import StageConfig
from servetop.core.errors import UsageError
from servetop.core.events import RequestRecord
from servetop.core.interfaces.run_source import RunHeader
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.summary.summary import run_summary
from tests.judgement.brief_recordings import record_briefly
from tests.reports.summary.test_steady_summary import MakeRequest, Summarise


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("costs") / "run.servetop"
    record_briefly(path, StageConfig(request_rate=20.0, duration=40.0))
    return path


def priced(path: Path, *prices: str) -> RunSummary:
    with contextlib.closing(RecordingReader.open(path)) as reader:
        return run_summary(reader, prices=prices)


def test_every_cost_times_its_throughput_is_the_price(recording: Path) -> None:
    summary = priced(recording, "7.2/h")
    for measured in (summary.measured, summary.stages[0].measured, summary.steady.measured):
        assert measured is not None
        cost, requests = measured.cost, measured.requests
        assert cost is not None
        assert (cost.per_request or 0) * (requests.request_throughput or 0) * 3600 == pytest.approx(7.2)
        per_hour = (cost.per_million_tokens or 0) / 1e6 * (requests.total_token_throughput or 0) * 3600
        assert per_hour == pytest.approx(7.2)


def test_only_the_steady_state_has_intervals_and_they_contain_its_costs(recording: Path) -> None:
    summary = priced(recording, "7.2/h")
    steady = summary.steady.measured
    assert summary.measured.cost is not None
    assert summary.measured.cost.per_million_tokens_interval is None
    assert steady is not None
    assert steady.cost is not None
    for name in ("per_request", "per_million_tokens", "per_million_input_tokens", "per_million_output_tokens"):
        low, high = getattr(steady.cost, f"{name}_interval")
        assert low < getattr(steady.cost, name) < high


def test_without_a_price_there_are_no_costs(recording: Path) -> None:
    assert priced(recording).measured.cost is None


def test_a_price_per_hour_is_shared_by_the_requests(
    summary_of: Summarise, make_request: MakeRequest, header: RunHeader
) -> None:
    config = replace(header.config, prices=("3600/h",))
    summary = summary_of(*(_answered(make_request, number) for number in range(10)), config=config)
    assert summary["cost"]["per_request"] == pytest.approx(summary["duration"] / 10)


def test_tokens_that_responses_report_as_cached_are_cheaper(
    summary_of: Summarise, make_request: MakeRequest, header: RunHeader
) -> None:
    config = replace(header.config, prices=("3600/h", "1:0.1:1/Mtok"))
    summary = summary_of(*(_answered(make_request, number, cached_tokens=5) for number in range(10)), config=config)
    cost = summary["cost"]
    assert cost["cached_share"] == 0.5
    assert cost["per_million_cached_tokens"] == pytest.approx(cost["per_million_input_tokens"] / 10)


def _answered(make_request: MakeRequest, number: int, **fields: int) -> RequestRecord:
    return make_request(number, float(number), **fields)


def test_prices_that_this_version_cannot_read_are_ignored_in_a_file_and_refused_as_an_argument(
    summary_of: Summarise, make_request: MakeRequest, header: RunHeader, tmp_path: Path
) -> None:
    summary = summary_of(make_request(1, 0.0), config=replace(header.config, prices=("7 shells/moon",)))
    assert "cost" not in summary
    with pytest.raises(UsageError, match="7 shells/moon"):
        priced(tmp_path / "run.servetop", "7 shells/moon")
