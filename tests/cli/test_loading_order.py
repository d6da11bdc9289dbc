"""A run imports as little as possible before its first request."""

from __future__ import annotations

import click
import pytest

from servetop.cli.commands import COMMANDS, command_group
from tests.harness import run_python


def loaded(heavy: set[str], *modules: str) -> str:
    """Which of the heavy modules are there once a process has imported those."""
    script = f"import sys, {', '.join(modules)}; print(sorted({heavy!r} & set(sys.modules)))"
    done = run_python(script)
    return done.stdout.strip()


def test_the_sender_is_started_before_heavy_imports() -> None:
    heavy = {"click", "asyncio", "numpy", "httpx", "msgspec", "servetop.cli.commands"}
    assert loaded(heavy, "servetop.cli.entry") == "[]"


def test_a_run_at_a_url_starts_without_numpy_and_httpx() -> None:
    heavy = {
        "numpy",
        "httpx",
        "rich",
        "textual",
        "psutil",
        "pynvml",
        "importlib.metadata",
        "servetop.engines.process.engine_process",
    }
    run = (
        "servetop.cli.main",
        "servetop.cli.headless.headless",
        "servetop.run.loop.run_loop",
        "servetop.recordings.write.recorder",
    )
    assert (
        loaded(heavy, *run, "servetop.engines.adapters.openai_compatible", "servetop.loadgen.worker.start_senders")
        == "[]"
    )


def test_only_the_command_that_runs_is_created() -> None:
    group = command_group()
    context = click.Context(group)
    assert group.list_commands(context) == [each.name for each in COMMANDS]
    assert group.get_command(context, "ls") is group.get_command(context, "ls") is not None
    assert group.get_command(context, "nothing") is None
    assert list(group.commands) == ["ls"]


READ_MEANWHILE = """
import asyncio, contextlib, importlib.abc, sys, threading
from pathlib import Path
from servetop.cli.headless.headless import HeadlessObserver
from servetop.core.config import EngineConfig, RunConfig
from servetop.core.config_values.watch_config import WatchConfig

class Threads(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.startswith("servetop.cli.watch.") and name.endswith("_progress"):
            threads.add(threading.current_thread() is threading.main_thread())

threads = set()
sys.meta_path.insert(0, Threads())
engine = EngineConfig(name="auto", model="", url="http://gpu7:8000")
config = RunConfig(engine=engine, watch=WatchConfig(several=SEVERAL))
asyncio.run(HeadlessObserver(config, Path("missing.servetop")).follow())
print(threads)
"""


@pytest.mark.parametrize("several", ["True", "False"])
def test_a_watched_server_is_read_while_what_prints_its_state_is_imported(several: str) -> None:
    done = run_python(READ_MEANWHILE.replace("SEVERAL", several))
    assert done.stdout.strip() == "{False}", "not in the thread of the event loop"
