"""Steady windows and cool-downs in the summary and in the file."""

import json
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from servetop.analysis.summary.steady_metrics import steady_windows
from servetop.analysis.summary.summary_json import summary_json
from servetop.analysis.trust.steady_state import METHOD
from servetop.core.events import RequestRecord, RunEnd, StageChange
from servetop.core.interfaces.run_source import RunHeader
from servetop.core.tick import TICK_SECONDS, Tick
from servetop.recordings.format.steady_codec import decode_windows
from servetop.recordings.read.load_run import load_run
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.resume import resume_recording
from servetop.recordings.write.tick_transaction import TickTransaction
from servetop.reports.summary.summary import run_summary
from tests.recordings.rows import change

MakeRequest = Callable[..., RequestRecord]
MakeTick = Callable[..., Tick]
Summarise = Callable[..., dict[str, Any]]
RATE, STAY, SECONDS = 4.0, 1.0, 30.0
"""A request every tick, of a second each, three tokens, due from second 0 to second 30."""


def stage(index: int, at: float, **fields: Any) -> StageChange:
    values: dict[str, Any] = {
        "label": f"stage {index}",
        "request_rate": RATE,
        "max_concurrency": None,
        "max_num_seqs": None,
    }
    values |= fields
    return StageChange(at=at, index=index, **values)


@pytest.fixture
def ticks(make_tick: MakeTick) -> Sequence[Tick]:
    """One request is due in every tick and takes a second; the last four drain."""
    load, stay = int(SECONDS / TICK_SECONDS), int(STAY / TICK_SECONDS)
    return [
        make_tick(
            index,
            due=int(index < load),
            ok=int(stay <= index < load + stay),
            output_tokens=3 * int(stay <= index < load + stay),
            prompt_tokens=10 * int(index < load),
            in_flight=max(0, min(index + 1, stay, load + stay - index - 1)),
            request_rate=RATE,
        )
        for index in range(load + stay + 8)
    ]


@pytest.fixture
def requests(make_request: MakeRequest) -> Sequence[RequestRecord]:
    """Every third request has a long TTFT."""
    return [
        make_request(number, number / RATE, tokens_at=[0.6 if number % 3 == 0 else 0.2, 0.9, STAY])
        for number in range(int(SECONDS * RATE))
    ]


def test_a_stage_has_totals_and_steady_metrics(
    summary_of: Summarise, requests: Sequence[RequestRecord], ticks: Sequence[Tick]
) -> None:
    summary = summary_of(*requests, ticks=ticks, stages=[stage(0, 0.0)])
    steady = summary["stages"][0]["steady"]
    assert (steady["method"], steady["reason"]) == (METHOD, None)
    assert steady["start"] == pytest.approx(1.25, abs=0.3)  # the first second, in which nothing ends, is excluded
    assert steady["end"] == SECONDS  # excluding the drain
    assert steady["seconds"] == steady["duration"] == steady["end"] - steady["start"]
    assert steady["num_prompts"] == steady["completed"] == steady["seconds"] * RATE
    assert steady["request_throughput"] == pytest.approx(RATE)
    assert steady["output_throughput"] == pytest.approx(3 * RATE)
    assert steady["total_token_throughput"] == pytest.approx(13 * RATE)
    assert summary["request_throughput"] == pytest.approx(120 / 30.75)  # the whole run includes the drain
    assert steady["mean_e2el_ms"] == pytest.approx(1000.0)
    assert summary["steady"] == steady


def test_goodput_is_computed_for_run_stage_and_steady_window(
    summary_of: Summarise, header: RunHeader, requests: Sequence[RequestRecord], ticks: Sequence[Tick]
) -> None:
    config = replace(header.config, goodput={"ttft": 0.5, "tpot": 0.5, "e2el": 5.0})
    summary = summary_of(*requests, ticks=ticks, stages=[stage(0, 0.0)], config=config)
    good = [request for request in requests if request.id % 3]
    assert summary["request_goodput"] == pytest.approx(len(good) / 30.75)
    assert summary["stages"][0]["request_goodput"] == summary["request_goodput"]
    steady = summary["steady"]
    inside = [request for request in requests if steady["start"] <= request.due < steady["end"]]
    share = sum(request.id % 3 > 0 for request in inside) / len(inside)
    assert steady["request_goodput"] == pytest.approx(share * RATE)


def test_each_of_several_stages_has_a_steady_window_and_the_run_has_none(
    summary_of: Summarise, requests: Sequence[RequestRecord], ticks: Sequence[Tick]
) -> None:
    later = [replace(each, stage=1) if each.due >= 15.0 else each for each in requests]
    summary = summary_of(*later, ticks=ticks, stages=[stage(0, 0.0), stage(1, 15.0)])
    first, second = (each["steady"] for each in summary["stages"])
    assert first["end"] <= 15.0 <= second["start"]
    assert summary["steady"]["start"] is None
    assert summary["steady"]["p99_ttft_ms"] is None
    assert summary["steady"]["reason"] == "each stage is a separate load: 2 of 2 had a steady state, see stages"


def test_a_cool_down_is_excluded_from_all_totals(
    summary_of: Summarise, header: RunHeader, requests: Sequence[RequestRecord], ticks: Sequence[Tick]
) -> None:
    config = replace(header.config, cooldown=5.0)
    last = requests[-1].due  # 29.75
    summary = summary_of(*requests, ticks=ticks, stages=[stage(0, 0.0)], config=config)
    assert summary["cooldown_requests"] == sum(request.due >= last - 5.0 for request in requests) == 21
    assert summary["num_prompts"] == summary["stages"][0]["num_prompts"] == 120 - 21
    assert summary["stages"][0]["cooldown_requests"] == 21
    assert summary["steady"]["end"] <= last - 5.0 + TICK_SECONDS


def test_every_stage_except_a_warm_up_has_a_cool_down(
    summary_of: Summarise, header: RunHeader, make_request: MakeRequest
) -> None:
    config = replace(header.config, cooldown=1.0)
    dues = {0: [0.0, 1.0], 1: [10.0, 11.5, 12.0], 2: [20.0, 20.5, 23.0]}
    requests = [make_request(i, due, stage=index) for index, each in dues.items() for i, due in enumerate(each)]
    stages = [stage(0, 0.0, warmup=True), stage(1, 10.0), stage(2, 20.0)]
    summary = summary_of(*requests, stages=stages, config=config)
    assert [(each["num_prompts"], each["cooldown_requests"]) for each in summary["stages"]] == [(1, 2), (2, 1)]
    assert (summary["num_prompts"], summary["cooldown_requests"]) == (3, 3)


@pytest.fixture
def written(tmp_path: Path, header: RunHeader, ticks: Sequence[Tick]) -> Path:
    """A finished recording whose end has its steady windows."""
    recorder = Recorder.create(tmp_path / "run.servetop", header)
    recorder.commit(TickTransaction(stages=[stage(0, 0.0)]))
    for tick in ticks:
        recorder.commit(TickTransaction(tick=tick))
    with closing(RecordingReader.open(recorder.path)) as reader:
        windows = steady_windows(load_run(reader))
    recorder.close(RunEnd(at=40.0, exit_code=0, reason=""), steady=windows)
    return recorder.path


@pytest.mark.parametrize(
    ("due_in", "reason"),
    [(1, "the load is too short: at least 10 s are needed"), (None, "no request was due")],
)
def test_requests_due_in_a_tick_that_two_stages_share_are_a_short_load(
    tmp_path: Path, header: RunHeader, make_tick: MakeTick, due_in: int | None, reason: str
) -> None:
    recorder = Recorder.create(tmp_path / "run.servetop", header)
    recorder.commit(TickTransaction(stages=[stage(0, 0.3)]))
    for index in range(8):
        recorder.commit(TickTransaction(tick=make_tick(index, due=3 * int(index == due_in))))
    with closing(RecordingReader.open(recorder.path)) as reader:
        assert steady_windows(load_run(reader))[0].reason == reason
    recorder.close(RunEnd(at=2.0, exit_code=0, reason=""))


def set_steady(path: Path, steady: str | None) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE run SET steady = ?", (steady,))
        connection.commit()


def steady_of(path: Path) -> dict[str, Any]:
    with closing(RecordingReader.open(path)) as reader:
        return dict(summary_json(run_summary(reader))["steady"])


def test_the_windows_stored_at_the_end_equal_those_computed_from_ticks(written: Path) -> None:
    with closing(RecordingReader.open(written)) as reader:
        stored = reader.steady
        assert stored == steady_windows(load_run(reader))
        assert reader.poll().header is not None
    found = steady_of(written)
    assert (found["start"], found["end"]) == (stored[0].start, stored[0].end)


@pytest.mark.parametrize("text", [None, "", "[", "[7]", '[{"stage": "x"}]', '[{"stage": 0, "start": "soon"}]'])
def test_missing_windows_are_computed_again(written: Path, text: str | None) -> None:
    before = steady_of(written)
    set_steady(written, text)
    assert steady_of(written) == before


def test_stored_windows_are_used_if_found_by_the_same_method(written: Path) -> None:
    true = steady_of(written)
    window = {"stage": 0, "start": 5.0, "end": 20.0, "method": METHOD, "from_the_future": 1}
    set_steady(written, json.dumps([window]))
    assert (steady_of(written)["start"], steady_of(written)["end"]) == (5.0, 20.0)
    set_steady(written, json.dumps([window | {"method": "guess"}]))
    assert steady_of(written) == true
    assert decode_windows(json.dumps([{"stage": 3, "reason": "no"}]))[3].reason == "no"


def test_a_resumed_older_file_gets_the_column_for_windows(written: Path) -> None:
    change(written, "ALTER TABLE run DROP COLUMN steady")
    recorder, _ = resume_recording(written)
    recorder.close(RunEnd(at=41.0, exit_code=0, reason=""), steady={})
    with closing(RecordingReader.open(written)) as reader:
        assert reader.end == RunEnd(at=41.0, exit_code=0, reason="")
