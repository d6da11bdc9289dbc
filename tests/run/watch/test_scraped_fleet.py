"""Servers that only a Prometheus server can reach are watched, judged and recorded through it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from servetop.analysis.fleet.replica_row import ReplicaClass
from servetop.core.config import EngineConfig, RunConfig
from servetop.core.config_values.watch_config import WatchConfig
from servetop.core.interfaces.replica_change import ReplicaState
from servetop.engines.watching import scraped_server
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.summary.watch_summary import watch_summary
from servetop.run.watch import address_list, watched_replica
from servetop.run.watch.watch_loop import WatchLoop
from servetop.tui.state.fleet_state import FleetState
from tests.engines.prometheus_stand_in import PrometheusStandIn
from tests.run.watch.test_watch_loop import until, watch
from tests.run.watch.test_watched_fleet import changes_of, samples_of
from tests.watched_server import PAGE

COUNTS: dict[str, Any] = {"running": 3, "waiting": 0, "kv": 0.25, "prompt": 1000, "finished": 10, "ttft": 2}


@contextmanager
def prometheus_server() -> Iterator[PrometheusStandIn]:
    """A Prometheus server in a thread of its own."""
    server, loop = PrometheusStandIn(), asyncio.new_event_loop()
    loop.run_until_complete(server.start())
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(server.stop())
        loop.close()


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    """That of the Prometheus server, if it wants one."""
    monkeypatch.setenv("PROMETHEUS_KEY", "abc")


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Series are read and asked for often, so that a test does not wait."""
    monkeypatch.setattr(watched_replica, "SCRAPED_PERIOD", 0.1)
    monkeypatch.setattr(scraped_server, "PRESENCE_PERIOD", 0.1)
    monkeypatch.setattr(address_list, "LOOK_SECONDS", 0.1)
    monkeypatch.setattr(address_list, "RESOLVE_SECONDS", 0.1)


def fleet_at(url: str) -> RunConfig:
    engine = EngineConfig(name="auto", model="", url=url, attach_timeout=2.0, metrics_api_key_env="PROMETHEUS_KEY")
    return RunConfig(engine=engine, watch=WatchConfig(several=True, prometheus=f'{url}/?match={{job="llm"}}'))


@pytest.mark.usefixtures("fast")
def test_servers_out_of_reach_are_read_counted_and_gone_when_their_series_end(tmp_path: Path) -> None:
    path = tmp_path / "watch.servetop"
    with prometheus_server() as prometheus:

        def scrape(output: float) -> None:
            prometheus.now += 15.0
            for port in (1, 2):
                prometheus.scrape(PAGE.format(output=output, **COUNTS), f"127.0.0.1:{port}")
            prometheus.scrape("up 1\n", "127.0.0.1:1")

        async def script(_: WatchLoop, reader: RecordingReader) -> None:
            await until(lambda: bool(samples_of(reader, 0)) and bool(samples_of(reader, 1)))
            scrape(500.0 + 300.0)
            await until(lambda: min(len(samples_of(reader, each)) for each in (0, 1)) == 2)
            await until(lambda: (reader.ticks()[-1].engine or prometheus) is not prometheus)
            prometheus.ended = {"127.0.0.1:2"}
            await until(lambda: changes_of(reader, 1)[-1].state is ReplicaState.REMOVED)

        scrape(500.0)
        prometheus.key = "abc"
        end = watch(fleet_at(prometheus.url), path, script)
    assert end.exit_code == 0
    with closing(RecordingReader.open(path)) as reader:
        first = changes_of(reader, 0)
        counted = [each.generation_tokens_total for each in samples_of(reader, 0)]
        state = FleetState(keep=None)
        state.fold(reader.poll())
        summary = watch_summary(reader)
    assert [each.state for each in first] == [ReplicaState.ATTACHING, ReplicaState.ATTACHED]
    assert first[-1].is_rare
    assert counted == [500.0, 800.0], "each scrape once"
    rows = {row.name: row.kind for row in state.at(state.until).rows}
    assert rows == {"127.0.0.1:1": ReplicaClass.SERVING, "127.0.0.1:2": ReplicaClass.REMOVED}
    assert summary.server.max_running == 6


@pytest.mark.usefixtures("fast")
def test_a_prometheus_server_that_is_away_for_a_while_ends_no_server(tmp_path: Path) -> None:
    path = tmp_path / "watch.servetop"

    def notes(reader: RecordingReader) -> str:
        return "\n".join(each.text for each in reader.notes())

    with prometheus_server() as prometheus:

        async def script(_: WatchLoop, reader: RecordingReader) -> None:
            await until(lambda: bool(samples_of(reader, 0)))
            prometheus.is_away = True
            await until(lambda: "no metrics from the Prometheus server" in notes(reader))
            await until(lambda: "the last list stays in force" in notes(reader))
            said = len(reader.ticks())
            await until(lambda: len(reader.ticks()) > said + 4)
            assert reader.ticks()[-1].engine is not None, "the sum counts as long as the scrapes of its servers"
            prometheus.is_away = False
            prometheus.now += 15.0
            prometheus.scrape(PAGE.format(output=700.0, **COUNTS), "127.0.0.1:1")
            await until(lambda: len(samples_of(reader, 0)) == 2)
            await until(lambda: "metrics are back" in notes(reader))

        prometheus.scrape(PAGE.format(output=500.0, **COUNTS), "127.0.0.1:1")
        assert watch(fleet_at(prometheus.url), path, script).exit_code == 0
    with closing(RecordingReader.open(path)) as reader:
        assert [each.state for each in changes_of(reader, 0)] == [ReplicaState.ATTACHING, ReplicaState.ATTACHED]


@pytest.mark.parametrize(
    ("series", "reason"),
    [
        ("", "knows no instance for the query"),
        ("node_load1 0.5\n", "has no metrics of an engine for it"),
    ],
)
def test_a_selector_of_nothing_or_of_another_job_is_one_line_and_exit_code_3(
    series: str, reason: str, tmp_path: Path
) -> None:
    with prometheus_server() as prometheus:
        prometheus.scrape(series, "127.0.0.1:1")
        end = watch(fleet_at(prometheus.url), tmp_path / "watch.servetop")
    assert end.exit_code == 3
    assert reason in end.reason
    assert "\n" not in end.reason
