"""A run or watch that continues in the background is called what it is."""

from __future__ import annotations

from pathlib import Path

from servetop.cli.launch import kind_of
from servetop.cli.viewing.detached import finding_hint, is_watch
from servetop.core.config import RunConfig
from servetop.core.config_values.watch_config import WatchConfig
from servetop.run.process.registered_run import RegisteredRun
from tests.recorded_watches import watch_of_one


def registered(recording: Path) -> RegisteredRun:
    return RegisteredRun(
        id="g2jj",
        pid=1,
        began=0.0,
        host="",
        engine="vllm",
        model="tiny",
        label="",
        recording=recording,
        state="running",
    )


def test_a_watch_is_called_a_watch(tmp_path: Path) -> None:
    path = watch_of_one(tmp_path / "watch.servetop")
    assert is_watch(path)
    assert finding_hint(registered(path)) == (
        "Watch g2jj continues. Show it: servetop attach g2jj · stop it: servetop stop g2jj",
    )
    assert kind_of(RunConfig(watch=WatchConfig())) == "watch"


def test_anything_else_is_called_a_run(tmp_path: Path) -> None:
    assert not is_watch(tmp_path / "missing.servetop")
    assert finding_hint(registered(tmp_path / "missing.servetop"))[0].startswith("Run g2jj continues. ")
    assert kind_of(RunConfig()) == "run"
