"""The counters of a simulated server are those of its answers up to each page, read by the adapter of vLLM."""

from __future__ import annotations

import functools
import itertools

import pytest

from servetop.core.events import EngineSample, RequestRecord, RequestStatus
from servetop.simulator.virtual_run.virtual_run import VirtualRun
from tests.judgement.counted_answers import CountedAnswers, server_failures
from tests.judgement.kinds import scenario


@functools.cache
def drawn(kind: str, number: int) -> VirtualRun:
    return scenario(kind, number, seed=21).run


def pages(run: VirtualRun) -> list[EngineSample]:
    return [tick.engine for tick in run.ticks if tick.engine is not None]


def ended(run: VirtualRun) -> list[RequestRecord]:
    """The requests that ended before the last page."""
    return [record for record in run.records if (record.done_at or 0.0) <= pages(run)[-1].scrape_start]


def counted(run: VirtualRun, *, by_status: bool) -> tuple[float | None, float | None]:
    """Ended and failed requests on the last page."""
    last = CountedAnswers(run, by_status=by_status).on(pages(run)[-1])
    return last.requests_ended_total, last.requests_failed_total


@pytest.mark.parametrize("by_status", [True, False])
def test_all_answers_count_and_those_with_5xx_as_failures(by_status: bool) -> None:
    run = drawn("failing-share", 17)
    failed = sum(record.error is not None for record in ended(run))
    assert len(list(server_failures(run))) >= failed > 3
    assert counted(run, by_status=by_status) == (len(ended(run)), failed)


def test_what_clients_send_wrong_is_no_failure_and_reaches_no_engine() -> None:
    run = drawn("wrong-requests", 1)
    refused = sum((record.error or "").startswith("HTTP 400") for record in ended(run))
    assert refused > 0
    assert list(server_failures(run)) == []
    assert counted(run, by_status=True) == (len(ended(run)), 0.0)
    assert counted(run, by_status=False) == (len(ended(run)) - refused, 0.0)


@pytest.mark.parametrize("by_status", [True, False])
def test_what_clients_abort_ends_and_does_not_fail(by_status: bool) -> None:
    run = drawn("aborts", 0)
    assert any(record.status is RequestStatus.CANCELLED for record in ended(run))
    assert counted(run, by_status=by_status) == (len(ended(run)), 0.0)


def test_counters_rise_with_time_and_a_page_is_one_object() -> None:
    run = drawn("failing-share", 17)
    counts = CountedAnswers(run, by_status=True)
    found = [counts.on(page) for page in pages(run)]
    for name in ("requests_ended_total", "requests_failed_total"):
        values = [getattr(each, name) for each in found]
        assert values[0] == 0.0
        assert all(before <= after for before, after in itertools.pairwise(values))
    first = next(iter(sorted(server_failures(run))))
    assert all((each.requests_failed_total or 0) == 0 for each in found if each.scrape_start < first)
    assert counts.on(pages(run)[5]) is found[5]
    assert found[5].running == pages(run)[5].running
