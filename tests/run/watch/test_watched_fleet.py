"""A watch of several servers: each is read on its own, whatever the others do, and only read."""

from __future__ import annotations

import asyncio
import contextlib
import math
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from servetop.core.config import EngineConfig, RunConfig
from servetop.core.config_values.watch_config import WatchConfig
from servetop.core.events import ReplicaSample, RunEnd
from servetop.core.interfaces.replica_change import ReplicaChange, ReplicaState
from servetop.core.interfaces.run_source import RunUpdate
from servetop.core.merged.tick_rows import TickRows
from servetop.recordings.format import schema
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.summary.watch_summary import watch_summary
from servetop.run.outcome import RunPhase
from servetop.run.watch.watch_loop import WatchLoop
from servetop.tui.state.fleet_state import FleetFrame, FleetState
from tests.run.watch.test_watch_loop import MAY_ASK, until, watch
from tests.watched_server import MODELS, PAGE, WatchedServer, watched_server


def fleet_of(*urls: str, file: Path | None = None) -> RunConfig:
    """A watch of some servers, named by letters."""
    engine = EngineConfig(name="auto", model="", url=urls[0], more_urls=urls[1:], attach_timeout=2.0)
    names = tuple("abcdefg"[: len(urls)])
    return RunConfig(
        engine=engine, watch=WatchConfig(several=True, names=names, file=None if file is None else str(file))
    )


@contextlib.contextmanager
def silent_server() -> Iterator[str]:
    """A server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def samples_of(reader: RecordingReader, number: int) -> list[ReplicaSample]:
    return [each for each in reader.replica_samples() if each.replica == number]


def changes_of(reader: RecordingReader, number: int) -> list[ReplicaChange]:
    return [each for each in reader.stream(schema.REPLICA_CHANGE) if each.replica == number]


def state_of(reader: RecordingReader, number: int) -> str:
    found = changes_of(reader, number)
    return found[-1].state.value if found else ""


def output_of(reader: RecordingReader, number: int) -> float | None:
    found = samples_of(reader, number)
    return found[-1].generation_tokens_total if found else None


def test_a_server_that_never_answers_delays_no_other_and_nothing_is_sent(tmp_path: Path) -> None:
    path = tmp_path / "watch.servetop"

    async def count(_: WatchLoop, reader: RecordingReader) -> None:
        await until(lambda: output_of(reader, 0) == output_of(reader, 2) == 500)
        assert state_of(reader, 1) == ReplicaState.ATTACHING, "the others do not wait for its time to be over"
        first.serve(requests=2, tokens=30)
        other.serve(requests=1, tokens=7)
        await until(lambda: (output_of(reader, 0), output_of(reader, 2)) == (530, 507))
        await until(lambda: state_of(reader, 1) == ReplicaState.GONE)

    with watched_server() as first, watched_server() as other, silent_server() as silent:
        end = watch(fleet_of(first.url, silent, other.url), path, count)
    assert (end.exit_code, end.reason) == (0, "")
    with closing(RecordingReader.open(path)) as reader:
        summary = watch_summary(reader)
        (reason,) = (each.reason for each in changes_of(reader, 1) if each.state is ReplicaState.GONE)
    assert "no response within 2 s" in reason
    assert summary.replicas is not None
    assert [(each.name, each.server.generation_tokens) for each in summary.replicas] == [
        ("a", 30),
        ("b", None),
        ("c", 7),
    ]
    assert summary.server.generation_tokens == 37, "the sum of what each counted while it was watched"
    for server in (first, other):
        assert {method for method, _ in server.seen} == {"GET"}
        often = {page for page, times in Counter(page for _, page in server.seen).items() if times > 1}
        assert often <= MAY_ASK, "a page that is not vLLM's is asked for once, to recognise the engine"


def test_a_server_that_ends_is_waited_for_while_the_other_is_read(tmp_path: Path) -> None:
    path, first_life = tmp_path / "watch.servetop", ExitStack()
    ending = first_life.enter_context(watched_server())
    port = urlsplit(ending.url).port or 0

    async def outlive(_: WatchLoop, reader: RecordingReader) -> None:
        await until(lambda: output_of(reader, 0) == output_of(reader, 1) == 500)
        ending.serve(requests=1, tokens=30)
        await until(lambda: output_of(reader, 0) == 530)
        await asyncio.to_thread(first_life.close)
        await until(lambda: state_of(reader, 0) == ReplicaState.GONE)
        staying.serve(requests=1, tokens=11)
        await until(lambda: output_of(reader, 1) == 511)
        with watched_server(port=port, counts={"output": 7.0, "finished": 0.0, "ttft": 0.0}):
            await until(lambda: state_of(reader, 0) == ReplicaState.RESTARTED and output_of(reader, 0) == 7)

    with first_life, watched_server() as staying:
        end = watch(fleet_of(ending.url, staying.url), path, outlive)
    assert end.exit_code == 0
    with closing(RecordingReader.open(path)) as reader:
        summary, notes = watch_summary(reader), [note.text for note in reader.notes()]
        states = [each.state for each in changes_of(reader, 1)]
    assert summary.replicas is not None
    assert [each.server.generation_tokens for each in summary.replicas] == [30 + 7, 11]
    assert summary.server.generation_tokens == 48, "the second life counts from 0"
    assert [each.restarts for each in summary.replicas] == [1, 0]
    assert states == [ReplicaState.ATTACHING, ReplicaState.ATTACHED], "the other one is not named"
    assert any(text.startswith("a: vLLM at") and "stopped responding" in text for text in notes)
    assert any(text.startswith("a: responds again after") for text in notes)


def test_counters_that_begin_again_at_0_are_a_restart_that_was_not_seen(tmp_path: Path) -> None:
    path = tmp_path / "watch.servetop"

    async def restart(_: WatchLoop, reader: RecordingReader) -> None:
        await until(lambda: output_of(reader, 0) == output_of(reader, 1) == 500)
        one.counts.update(prompt=0.0, output=5.0, finished=0.0, ttft=0.0)
        await until(lambda: state_of(reader, 0) == ReplicaState.RESTARTED)

    with watched_server() as one, watched_server() as other:
        watch(fleet_of(one.url, other.url), path, restart)
    with closing(RecordingReader.open(path)) as reader:
        assert "a: was restarted" in [note.text for note in reader.notes()]
        assert state_of(reader, 1) == ReplicaState.ATTACHED


def test_a_server_that_drains_is_named_until_its_health_page_says_200_and_one_that_is_idle_never(
    tmp_path: Path,
) -> None:
    path, seen = tmp_path / "watch.servetop", []

    def shown(reader: RecordingReader) -> FleetFrame:
        fleet = FleetState(keep=None)
        fleet.fold(RunUpdate(
            ticks=TickRows(reader.ticks().rows), replica_samples=reader.replica_samples(),
            replica_changes=list(reader.stream(schema.REPLICA_CHANGE)), end=RunEnd(at=0.0, exit_code=0, reason=""),
        ))  # fmt: skip
        return fleet.at(math.inf)

    def state(reader: RecordingReader, name: str) -> str:
        seen.append({row.name: row.state for row in shown(reader).rows})
        return seen[-1].get(name, "")

    async def drain(_: WatchLoop, reader: RecordingReader) -> None:
        await until(lambda: (state(reader, "a"), state(reader, "b")) == ("serving", "idle"))
        one.is_ready = False
        await until(lambda: state(reader, "a") == "draining")
        assert shown(reader).line.startswith("1 of 2 serve; a draining since ")
        one.counts["running"] = 0.0
        await until(lambda: state(reader, "a") == "not ready")
        one.is_ready = True
        await until(lambda: state(reader, "a") == "idle")

    with watched_server() as one, watched_server(counts={"running": 0.0}) as other:
        watch(fleet_of(one.url, other.url), path, drain)
    assert not {"draining", "not ready"} & {each.get("b") for each in seen}
    for server in (one, other):
        assert {method for method, _ in server.seen} == {"GET"}
    with closing(RecordingReader.open(path)) as reader:
        assert [each.not_ready for each in changes_of(reader, 0)] == [None, None, "/health: HTTP 503", None]
        assert [each.not_ready for each in changes_of(reader, 1)] == [None, None]
        notes = [note.text for note in reader.notes() if note.text.startswith("a: takes")]
        summary = watch_summary(reader)
    assert notes == [
        "a: takes no new requests (/health: HTTP 503), and its metrics are read",
        "a: takes requests again, by its health page",
    ]
    assert summary.replicas is not None
    assert [(each.state, each.restarts) for each in summary.replicas] == [("attached", 0)] * 2


def test_servers_come_and_go_as_their_file_says(tmp_path: Path) -> None:
    path, listed = tmp_path / "watch.servetop", tmp_path / "servers.txt"

    async def rewrite(_: WatchLoop, reader: RecordingReader) -> None:
        await until(lambda: output_of(reader, 0) == 500)
        listed.write_text(f"# two\nfirst = {one.url}\nsecond = {other.url}\n")
        await until(lambda: output_of(reader, 1) == 500 and changes_of(reader, 0)[-1].name == "first")
        listed.write_text("this is no address\n")
        await until(lambda: any("the last list stays in force" in note.text for note in reader.notes()))
        listed.write_text(f"second = {other.url}\n")
        await until(lambda: state_of(reader, 0) == ReplicaState.REMOVED)
        other.serve(requests=1, tokens=9)
        await until(lambda: output_of(reader, 1) == 509)

    with watched_server() as one, watched_server() as other:
        listed.write_text(f"{one.url}\n")
        end = watch(fleet_of(one.url, file=listed), path, rewrite)
    assert end.exit_code == 0
    with closing(RecordingReader.open(path)) as reader:
        summary, facts = watch_summary(reader), reader.header.engine
    assert summary.replicas is not None
    assert [(each.name, each.state) for each in summary.replicas] == [("first", "removed"), ("second", "attached")]
    assert facts is not None
    assert facts.replica_urls == (one.url, other.url)


def test_an_address_that_is_no_engine_is_said_and_the_others_are_watched(tmp_path: Path) -> None:
    path = tmp_path / "watch.servetop"

    async def look(_: WatchLoop, reader: RecordingReader) -> None:
        await until(lambda: output_of(reader, 0) == 500 and state_of(reader, 1) == ReplicaState.REFUSED)

    with watched_server() as one, watched_server() as other:
        other.pages = {"/": "hello"}
        end = watch(fleet_of(one.url, other.url), path, look)
    assert end.exit_code == 0
    with closing(RecordingReader.open(path)) as reader:
        assert any(note.text.startswith("b: ") and "lists no models" in note.text for note in reader.notes())


@pytest.mark.parametrize("count", [1, 2])
def test_no_server_that_responds_is_an_error(tmp_path: Path, count: int) -> None:
    urls = ["http://127.0.0.1:9", "http://127.0.0.1:13"][:count]
    end = watch(fleet_of(*urls), tmp_path / "watch.servetop")
    assert (end.exit_code, "nothing answers at http://127.0.0.1:9" in end.reason) == (3, True)
    assert ("none of 2 servers" in end.reason) == (count == 2)


def has_blocks(server: WatchedServer, count: int) -> None:
    """Let a server export its number of KV blocks."""
    info = f'vllm:cache_config_info{{block_size="16",num_gpu_blocks="{count}"}} 1\n'
    server.pages = {"/v1/models": MODELS, "/health": "", "/metrics": PAGE.format(**server.counts) + info}


@pytest.mark.parametrize("later", [0.03, 0.06, 0.1, 0.15])
def test_the_kv_blocks_are_those_of_all_servers_if_one_attaches_a_moment_later(later: float, tmp_path: Path) -> None:
    path = tmp_path / "watch.servetop"

    async def look(loop: WatchLoop, reader: RecordingReader) -> None:
        await until(lambda: output_of(reader, 0) == output_of(reader, 1) == 500 and loop.phase is RunPhase.RUNNING)

    with watched_server() as one, watched_server() as other:
        has_blocks(one, 301)
        has_blocks(other, 2884)
        other.page_takes = later
        watch(fleet_of(one.url, other.url), path, look)
    with closing(RecordingReader.open(path)) as reader:
        facts = reader.header.engine
    assert facts is not None
    assert facts.kv_blocks_total == 300 + 2883, "without vLLM's null blocks"
