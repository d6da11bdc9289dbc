"""A watch of one server: what it asks for, what it records, and what it does while the server is gone."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from servetop.core.clock import ClockAnchor
from servetop.core.config import EngineConfig, RunConfig
from servetop.core.config_values.watch_config import WatchConfig
from servetop.core.events import Action, RunEnd
from servetop.core.interfaces.run_source import RunHeader
from servetop.engines.metrics.scrape_period import LONGEST_PERIOD, READING_SHARE, RECENT
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.resume import RunStart
from servetop.reports.summary.watch_summary import watch_summary
from servetop.run.exit_code import close_recording
from servetop.run.watch.watch_loop import WatchLoop
from servetop.run.watch.watched_replica import SAMPLE_PERIOD
from servetop.run.watch.watched_rows import WatchedRows
from servetop.tui.state.engine_page import EngineMetricsHistory
from tests.harness import SLOW_MACHINE
from tests.watched_server import watched_server

MAY_ASK = {"/v1/models", "/health", "/metrics", "/version"}
"""Pages of vLLM that a watch reads; an engine is recognised by the pages of all, each of which is asked for once."""

Script = Callable[[WatchLoop, RecordingReader], Awaitable[None]]


def config_of(url: str, duration: float | None = None) -> RunConfig:
    engine = EngineConfig(name="auto", model="", url=url)
    return RunConfig(engine=engine, watch=WatchConfig(duration=duration))


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30 * SLOW_MACHINE):
        while not condition():
            await asyncio.sleep(0.02)


def watch(config: RunConfig, path: Path, script: Script | None = None) -> RunEnd:
    """Watch until the script has ended, or as long as the configuration says."""
    anchor = ClockAnchor.take()
    recorder = Recorder.create(path, RunHeader(config=config, anchor=anchor))
    loop = WatchLoop(config, recorder, start=RunStart(anchor=anchor), alert=print)

    async def watched() -> RunEnd:
        running = asyncio.ensure_future(loop.run())
        if script is not None:
            with closing(RecordingReader.open(path)) as reader:
                await script(loop, reader)
            loop.stop_requests.cancel()
        return await running

    end, _ = close_recording(recorder, asyncio.run(watched()), config)
    return end


def scraped(reader: RecordingReader) -> bool:
    """Whether the newest tick has a sample of the engine."""
    ticks = reader.ticks()
    return bool(ticks) and ticks[-1].engine is not None


def newest_output(reader: RecordingReader) -> float | None:
    """The engine's output tokens in the newest tick with a sample."""
    return next((each.engine.generation_tokens_total for each in reversed(reader.ticks()) if each.engine), None)


def texts(reader: RecordingReader) -> str:
    return "\n".join(note.text for note in reader.notes())


def test_the_counters_of_others_are_recorded_to_the_token_and_nothing_is_sent(tmp_path: Path) -> None:
    path = tmp_path / "watch.servetop"

    async def serve(_: WatchLoop, reader: RecordingReader) -> None:
        await until(lambda: scraped(reader))
        server.serve(requests=4, tokens=70)

    with watched_server() as server:
        end = watch(config_of(server.url), path, serve)
    assert (end.exit_code, end.reason) == (0, "")
    with closing(RecordingReader.open(path)) as reader:
        summary = watch_summary(reader)
        assert not any(tick.client.sent or tick.client.gauges.in_flight for tick in reader.ticks())
        assert (reader.stages(), list(reader.request_rows(("id",)))) == ([], [])
    assert summary.watched is not None
    assert (summary.server.generation_tokens, summary.watched.requests) == (70, 4)
    assert summary.watched.mean_ttft_ms == pytest.approx(200.0)
    assert {method for method, _ in server.seen} == {"GET"}
    often = {path for path, count in Counter(path for _, path in server.seen).items() if count > 1}
    assert often <= MAY_ASK, "a page that is not vLLM's is asked for once, to recognise the engine"


def test_a_server_without_metrics_gets_no_completion_either(tmp_path: Path) -> None:
    with watched_server(has_metrics=False) as server:
        end = watch(config_of(server.url, duration=0.5), tmp_path / "watch.servetop")
    assert end.exit_code == 0
    assert {method for method, _ in server.seen} == {"GET"}
    with closing(RecordingReader.open(tmp_path / "watch.servetop")) as reader:
        summary = watch_summary(reader)
        said = texts(reader)
    assert summary.watched is not None
    assert (summary.watched.judged, summary.server.max_running) == (False, None)
    assert summary.headline.startswith("answered for 0:0")
    assert summary.headline.endswith("without metrics that servetop knows limits are not judged")
    assert "vLLM 0.11.0 answers (/health: HTTP 200 in" in said
    assert "serves tiny, but no metrics are read (/metrics: HTTP 404)" in said


def test_metrics_of_an_unknown_engine_are_recorded_for_the_engine_page_and_the_summary(tmp_path: Path) -> None:
    path = tmp_path / "watch.servetop"

    async def read_twice(_: WatchLoop, reader: RecordingReader) -> None:
        await until(lambda: len(list(reader.engine_series())) > 1)

    with watched_server() as server:
        models = '{"data": [{"id": "x"}]}'
        server.pages = {"/v1/models": models, "/metrics": '# TYPE acme_running gauge\nacme_running{gpu="0"} 3\n'}
        end = watch(config_of(server.url), path, read_twice)
    assert (end.exit_code, {method for method, _ in server.seen}) == (0, {"GET"})
    with closing(RecordingReader.open(path)) as reader:
        summary = watch_summary(reader)
        history, at = EngineMetricsHistory(), reader.ticks()[-1].end
        history.fold(list(reader.engine_series()))
        page = history.page(reader.header, at, 8, until=at, span=8.0)
    shown = [(line.spec.name, line.value) for group in page.groups for line in group.lines]
    assert shown == [("acme_running", 3.0)]
    assert [(each.series, each.value) for each in summary.engine_metrics or ()] == [("acme_running", 3.0)]


def test_a_server_that_is_no_engine_is_an_error(tmp_path: Path) -> None:
    with watched_server() as server:
        server.pages = {"/": "Welcome to nginx!"}
        config = config_of(server.url)
        end = watch(replace(config, engine=replace(config.engine, model="x")), tmp_path / "watch.servetop")
    assert (end.exit_code, "it is no engine that can be watched" in end.reason) == (3, True)


def test_a_batch_limit_that_the_user_gives_makes_a_full_batch_visible(tmp_path: Path) -> None:
    path = tmp_path / "watch.servetop"

    async def judged(_: WatchLoop, reader: RecordingReader) -> None:
        rows = WatchedRows(path)
        try:
            await until(lambda: (new := rows.new()) is not None and new[1][0].state == "batch-bound")
        finally:
            rows.close()

    with watched_server(counts={"running": 8.0, "waiting": 30.0}) as server:
        config = config_of(server.url)
        watch(replace(config, engine=replace(config.engine, max_num_seqs=8)), path, judged)
    assert {method for method, _ in server.seen} == {"GET"}


def test_a_server_that_ends_is_waited_for_and_its_new_counters_add_up(tmp_path: Path) -> None:
    path, first_life = tmp_path / "watch.servetop", ExitStack()
    server = first_life.enter_context(watched_server())
    port = urlsplit(server.url).port or 0

    async def outlive(_: WatchLoop, reader: RecordingReader) -> None:
        await until(lambda: scraped(reader))
        server.serve(requests=1, tokens=30)
        await until(lambda: newest_output(reader) == 530)
        await asyncio.to_thread(first_life.close)
        await until(lambda: "stopped responding (connection refused): the watch waits for it" in texts(reader))
        with watched_server(port=port, counts={"output": 7.0, "finished": 0.0, "ttft": 0.0}):
            await until(lambda: "the server responds again after" in texts(reader))
            await until(lambda: newest_output(reader) == 7)
            await until(lambda: scraped(reader))

    with first_life:
        end = watch(config_of(server.url), path, outlive)
    assert end.exit_code == 0
    with closing(RecordingReader.open(path)) as reader:
        summary = watch_summary(reader)
    assert summary.server.generation_tokens == 30 + 7, "the second server counts from 0"
    assert summary.watched is not None
    assert summary.watched.seconds_without_metrics > 0


def test_a_command_that_steers_a_load_is_answered_and_has_no_effect(tmp_path: Path) -> None:
    path = tmp_path / "watch.servetop"

    async def steer(_: WatchLoop, reader: RecordingReader) -> None:
        await until(lambda: scraped(reader))
        for action in (Action.SET_RATE, Action.BURST, Action.SET_MAX_NUM_SEQS, Action.MARK):
            reader.send(action, value=5.0, text="deployed")
        await until(lambda: all(each.reply for each in reader.commands()) and len(reader.commands()) == 4)

    with watched_server() as server:
        watch(config_of(server.url), path, steer)
    with closing(RecordingReader.open(path)) as reader:
        replies = [each.reply for each in reader.commands()]
        marks = [note.text for note in reader.notes() if note.source == "user"]
    assert replies == [*["a watch sends no load"] * 3, "marked"]
    assert marks == ["deployed"]
    assert {method for method, _ in server.seen} == {"GET"}


def test_a_server_that_never_responded_is_an_error(tmp_path: Path) -> None:
    end = watch(config_of("http://127.0.0.1:9"), tmp_path / "watch.servetop")
    assert (end.exit_code, "nothing answers at http://127.0.0.1:9" in end.reason) == (3, True)


def test_a_watched_server_is_read_once_a_second(tmp_path: Path) -> None:
    path = tmp_path / "watch.servetop"

    def readings() -> int:
        return Counter(page for _, page in server.seen)["/metrics"]

    async def wait(_: WatchLoop, reader: RecordingReader) -> None:
        await until(lambda: scraped(reader) and readings() >= 6)

    with watched_server() as server:
        watch(config_of(server.url), path, wait)
    with closing(RecordingReader.open(path)) as reader:
        starts = [each.scrape_start for each in reader.engine_samples()]
    periodic = [math.floor(each / SAMPLE_PERIOD) for each in starts[1:-1]]  # the first is at once, the last at the end
    assert len(periodic) >= 3
    assert len(set(periodic)) == len(periodic)


@pytest.mark.parametrize(("named", "gap"), [(False, LONGEST_PERIOD), (True, SAMPLE_PERIOD)])
def test_a_page_that_takes_long_is_read_less_often_unless_its_address_was_given(
    named: bool, gap: float, tmp_path: Path
) -> None:
    path = tmp_path / "watch.servetop"

    async def wait(_: WatchLoop, reader: RecordingReader) -> None:
        def read_with_gap() -> bool:
            starts = [each.scrape_start for each in reader.engine_samples()]
            gaps = [later - before for before, later in pairwise(starts[RECENT:])]
            return gaps[-2:] == [pytest.approx(gap, abs=0.1)] * 2

        await until(read_with_gap)

    with watched_server() as server:
        server.page_takes = LONGEST_PERIOD * READING_SHARE
        config = config_of(server.url)
        address = f"{server.url}/metrics" if named else None
        watch(replace(config, engine=replace(config.engine, metrics_url=address)), path, wait)
