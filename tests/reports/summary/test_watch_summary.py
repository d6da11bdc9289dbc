"""The summary of a recorded watch: figures of the engine, durations of its limits, and nothing of a client."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from servetop.analysis.summary.summary_json import plain_object
from servetop.core.clock import ClockAnchor
from servetop.core.config import EngineConfig, RunConfig
from servetop.core.config_values.watch_config import WatchConfig
from servetop.core.errors import UsageError
from servetop.core.events import RunEnd
from servetop.core.interfaces.run_source import RunHeader
from servetop.core.tick import Tick
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.tick_transaction import TickTransaction
from servetop.reports.schema.watch_schema import watch_schema
from servetop.reports.summary.summary import run_summary
from servetop.reports.summary.watch_summary import watch_summary
from tests.analysis.test_watched_signals import FACTS, SECONDS, ticks
from tests.reports.schema.test_summary_schema import ROOT, schema_errors

CONFIG = RunConfig(engine=EngineConfig(name="auto", model="", url="http://gpu7:8000"), watch=WatchConfig())
SCHEMA = json.loads((ROOT / "docs" / "schema" / "watch.json").read_text())


@contextmanager
def recorded_watch(folder: Path, recorded: Sequence[Tick]) -> Iterator[RecordingReader]:
    """A finished watch with these ticks."""
    path = folder / "watch.servetop"
    recorder = Recorder.create(path, RunHeader(config=CONFIG, anchor=ClockAnchor.take()))
    recorder.set_engine(replace(FACTS, url="http://gpu7:8000", model="tiny"))
    for tick in recorded:
        samples = [] if tick.engine is None else [tick.engine]
        recorder.commit(TickTransaction(tick=tick, engine_samples=samples))
    recorder.close(RunEnd(at=recorded[-1].end, exit_code=0, reason=""))
    with closing(RecordingReader.open(path)) as reader:
        yield reader


def test_figures_are_those_of_the_engine_over_the_watched_time(tmp_path: Path) -> None:
    with recorded_watch(tmp_path, ticks(waiting=30.0)) as reader:
        summary = watch_summary(reader)
    watched = summary.watched
    assert watched is not None
    assert (watched.seconds, watched.seconds_without_metrics) == (SECONDS, 0.0)
    assert watched.output_throughput == pytest.approx(200, rel=0.01)
    assert watched.mean_ttft_ms == pytest.approx(100, rel=0.01)
    assert (watched.requests, watched.mean_e2el_ms) == (None, None), "not exported, not 0"
    assert (summary.server.max_waiting, summary.server.max_running) == (30.0, 16.0)
    (limit,) = watched.limits
    assert limit.name == "batch-bound"
    assert (limit.onset, limit.seconds) == pytest.approx((20, 20), abs=1)
    assert summary.headline == "batch-bound for 0:20 of 1:00"


def test_a_time_without_metrics_is_counted_and_a_restart_is_no_negative_rate(tmp_path: Path) -> None:
    whole = ticks(waiting=0.0)
    gap = range(100, 140)
    fresh = [
        replace(each.engine, generation_tokens_total=1.0 * index) for index, each in enumerate(whole) if each.engine
    ]
    cut = [
        replace(tick, engine=None if index in gap else fresh[index] if index >= gap.stop else tick.engine)
        for index, tick in enumerate(whole)
    ]
    with recorded_watch(tmp_path, cut) as reader:
        summary = watch_summary(reader)
    assert summary.watched is not None
    assert summary.watched.seconds_without_metrics == 10.0
    assert summary.server.generation_tokens == pytest.approx(200 * 25.0 - 50.0 + 239.0)
    assert summary.headline == "without metrics for 0:10 of 1:00"


def test_the_summary_is_valid_by_its_schema_and_has_no_figure_of_a_client(tmp_path: Path) -> None:
    assert watch_schema() == SCHEMA, "run: make schema"
    with recorded_watch(tmp_path, ticks(waiting=30.0)) as reader:
        summary = json.loads(json.dumps(plain_object(watch_summary(reader))))
    assert schema_errors(summary, SCHEMA, SCHEMA["$defs"]) == []
    assert not {"completed", "trust", "num_prompts", "request_rate", "stages", "steady", "story"} & set(summary)


def test_there_is_no_summary_of_requests(tmp_path: Path) -> None:
    with recorded_watch(tmp_path, ticks(waiting=0.0)) as reader, pytest.raises(UsageError, match="is a recorded watch"):
        run_summary(reader)


def test_an_overload_that_is_over_lasts_to_its_end_though_the_watch_ends_before_that_is_confirmed(
    tmp_path: Path,
) -> None:
    confirmed = ticks(waiting=30.0)
    early = [tick for tick in confirmed if tick.end <= 43.5]
    with recorded_watch(tmp_path, early) as reader:
        assert watch_summary(reader).headline == "batch-bound for 0:20 of 0:43"
    lasting = [tick for tick in confirmed if tick.end <= 35.0]
    with recorded_watch(tmp_path / "lasting", lasting) as reader:
        assert watch_summary(reader).headline == "batch-bound for 0:15 of 0:35"
