"""A run imports as little as possible before its first request."""

from __future__ import annotations

import click

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
