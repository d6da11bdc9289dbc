"""A search is checked before it starts, and its first load is planned."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from servetop.core.config import StageConfig, from_data, to_data
from servetop.core.config_values.search_config import SearchConfig
from servetop.core.errors import RecordingError, UsageError
from servetop.run.search.search_evidence import NextProbe
from servetop.run.search.search_setup import SearchSetup, resumed_search, with_first_load
from tests.judgement.brief_recordings import record_briefly
from tests.run.search.searches import SEARCH, config, record, setup


def test_the_configuration_of_a_search_is_kept_in_a_header() -> None:
    plain = config()
    assert from_data(type(plain), to_data(plain)) == plain
    assert "search" not in to_data(dataclasses.replace(plain, search=None))


def test_the_first_load_follows_the_warmup() -> None:
    warmup = StageConfig(max_concurrency=8, num_prompts=4, warmup=True)
    planned = with_first_load(config(warmup, StageConfig(request_rate=3.0, duration=1.0)))
    assert planned.stages[0] == warmup
    assert len(planned.stages) == 2
    assert SEARCH.low <= planned.stages[1].request_rate <= SEARCH.high
    assert planned.max_failures == "100%"


@pytest.mark.parametrize(("prior", "begins"), [(None, SEARCH.low), (20.0, 10.0), (0.1, SEARCH.low), (1e6, SEARCH.high)])
def test_a_search_begins_at_half_of_the_expected_load(prior: float | None, begins: float) -> None:
    search = dataclasses.replace(SEARCH, prior=prior)
    assert with_first_load(config(search=search)).stages[0].request_rate == begins


def test_a_load_in_flight_is_a_closed_loop() -> None:
    closed = dataclasses.replace(SEARCH, over="max_concurrency")
    assert setup(search=closed).stage(NextProbe(load=3.6, seconds=5.0)) == StageConfig(max_concurrency=4, duration=5.0)


@pytest.mark.parametrize(
    ("changes", "hint"),
    [
        ({"low": 5.0, "high": 5.0}, "leave no load to try"),
        ({"low": 0.0}, "--low 0 is not a load: give a number above 0"),
        ({"high": float("inf")}, "--high inf is not a load"),
        ({"over": "burstiness"}, "use request_rate or max_concurrency"),
        ({"over": "max_concurrency", "low": 0.5}, "whole numbers from 1"),
        ({"high": 1e9}, "more than|beyond what one machine can send"),
        ({"budget": 1.0}, "too short for one load"),
        ({"precision": 1.5}, "use a share above 0 and below 1"),
        ({"prior": 0.0}, "--prior 0 is not a load: give a number above 0, or --no-prior"),
        ({"prior": float("inf")}, "--prior inf is not a load"),
        ({"slo": ()}, "add --slo"),
    ],
)
def test_a_search_that_cannot_work_is_refused(changes: dict[str, Any], hint: str) -> None:
    with pytest.raises(UsageError, match=hint):
        SearchSetup.of(config(search=dataclasses.replace(SEARCH, **changes)))


def test_a_run_without_objectives_is_not_a_search() -> None:
    with pytest.raises(UsageError, match="not a search"):
        SearchSetup.of(dataclasses.replace(config(), search=None))


def test_an_interrupted_search_continues_with_the_next_load(tmp_path: Path) -> None:
    resumed = resumed_search(record(tmp_path / "run.servetop", 1.0))
    assert resumed.search == SEARCH
    assert len(resumed.stages) == 1


def test_only_a_search_is_resumed(tmp_path: Path) -> None:
    other = record_briefly(tmp_path / "run.servetop", StageConfig(request_rate=5.0, duration=2.0))
    with pytest.raises(RecordingError, match="not the recording of a search"):
        resumed_search(other)


def test_a_search_varies_one_of_two_loads() -> None:
    search = SearchConfig(slo=("p99_ttft<1s",), over="max_concurrency", low=1, high=8)
    assert search.concurrency
    assert not SEARCH.concurrency
