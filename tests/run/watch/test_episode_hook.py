"""A watch that runs a command: for an overload of one server, and for one of several that is gone and returns."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import shlex
import sys
from contextlib import ExitStack, closing
from pathlib import Path
from urllib.parse import urlsplit

from servetop.core.config import RunConfig
from servetop.core.config_values.watch_config import WatchConfig
from servetop.recordings.read.reader import RecordingReader
from servetop.run.watch.watch_loop import WatchLoop
from tests.run.watch.test_watch_loop import config_of, scraped, texts, until, watch
from tests.run.watch.test_watched_fleet import fleet_of
from tests.watched_server import watched_server

WRITE = """
import json, os, sys
found = {name.removeprefix("SERVETOP_EPISODE_"): os.environ[name] for name in os.environ if "_EPISODE_" in name}
with open(sys.argv[1], "a") as file:
    file.write(json.dumps(found) + "\\n")
"""


def with_command(config: RunConfig, *words: str) -> RunConfig:
    settings = config.watch or WatchConfig()
    command = shlex.join([sys.executable, "-I", "-c", *words])
    return dataclasses.replace(config, watch=dataclasses.replace(settings, on_episode=command))


def told(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def kinds(path: Path) -> list[tuple[str, str, str]]:
    return [(each["SERVER"], each["STATE"], each["KIND"]) for each in told(path)]


def test_a_queue_at_a_server_that_is_watched_alone_begins_and_ends(tmp_path: Path) -> None:
    found = tmp_path / "told"

    async def fill(_: WatchLoop, reader: RecordingReader) -> None:
        await until(lambda: scraped(reader))
        server.counts["waiting"] = 30.0
        await until(lambda: bool(told(found)))
        server.counts["waiting"] = 0.0
        await until(lambda: len(told(found)) == 2)

    with watched_server() as server:
        end = watch(with_command(config_of(server.url), WRITE, str(found)), tmp_path / "watch.servetop", fill)
    assert end.exit_code == 0
    name = urlsplit(server.url).netloc
    assert kinds(found) == [(name, "begins", "requests wait"), (name, "ends", "requests wait")]
    begun, ended = told(found)
    assert begun["URL"] == server.url
    assert begun["SINCE"] == ended["SINCE"]
    assert begun["TEXT"].startswith(f"{name}: requests wait: 30 waiting")
    assert ended["TEXT"].endswith("now serving")


def test_one_of_several_that_is_gone_and_returns_is_told_and_the_other_is_not(tmp_path: Path) -> None:
    found, first_life = tmp_path / "told", ExitStack()
    server = first_life.enter_context(watched_server())

    async def outlive(_: WatchLoop, reader: RecordingReader) -> None:
        await until(lambda: len({each.replica for each in reader.replica_samples()}) == 2)
        await asyncio.to_thread(first_life.close)
        await until(lambda: bool(told(found)))
        with watched_server(
            port=urlsplit(server.url).port or 0, counts={"output": 7.0, "prompt": 1.0, "finished": 0.0}
        ):
            await until(lambda: len(told(found)) == 3)

    with first_life, watched_server() as calm:
        config = with_command(fleet_of(server.url, calm.url), WRITE, str(found))
        watch(config, tmp_path / "watch.servetop", outlive)
    assert kinds(found) == [("a", "begins", "no response"), ("a", "ends", "no response"), ("a", "begins", "restarted")]


def test_a_command_that_fails_or_hangs_is_noted_and_the_watch_continues(tmp_path: Path) -> None:
    async def fill(_: WatchLoop, reader: RecordingReader) -> None:
        await until(lambda: scraped(reader))
        server.counts["waiting"] = 30.0
        await until(lambda: "exited with status 1: no route to the pager" in texts(reader))
        ticks = len(reader.ticks())
        await until(lambda: len(reader.ticks()) >= ticks + 4)

    config = with_command(config_of(""), "raise SystemExit('no route to the pager')")
    with watched_server() as server:
        config = dataclasses.replace(config, engine=dataclasses.replace(config.engine, url=server.url))
        end = watch(config, tmp_path / "watch.servetop", fill)
    assert end.exit_code == 0
    with closing(RecordingReader.open(tmp_path / "watch.servetop")) as reader:
        assert [note.source for note in reader.notes() if "pager" in note.text] == ["on-episode"]


def test_a_server_that_fails_requests_is_told_although_its_health_page_says_200(tmp_path: Path) -> None:
    found = tmp_path / "told"

    async def fail(_: WatchLoop, reader: RecordingReader) -> None:
        await until(lambda: scraped(reader))
        server.answers["5xx"] = 12
        await until(lambda: bool(told(found)))
        await until(lambda: len(told(found)) == 2)

    with watched_server(counts={"running": 0.0, "kv": 0.0}) as server:
        server.answers = {"2xx": 400, "4xx": 60}
        end = watch(with_command(config_of(server.url), WRITE, str(found)), tmp_path / "watch.servetop", fail)
    assert end.exit_code == 0
    name = urlsplit(server.url).netloc
    assert kinds(found) == [(name, "begins", "failing"), (name, "ends", "failing")]
    begun, ended = told(found)
    assert begun["TEXT"].startswith(f"{name}: failing: 100% of requests, 0 running")
    assert ended["TEXT"].endswith("now idle")
