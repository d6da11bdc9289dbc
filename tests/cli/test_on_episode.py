"""`servetop watch --on-episode`: a command is run for a simulator that is killed, with and without a dashboard."""

from __future__ import annotations

import shlex
import signal
import sys
from pathlib import Path

import pytest

from servetop.cli.main import main
from tests.cli.test_watch_fleet import simulators
from tests.harness import Servetop, wait_for
from tests.run.watch.test_episode_hook import WRITE, kinds, told
from tests.watched_server import watching


@pytest.mark.integration
@pytest.mark.parametrize("way", ["--headless", "--detach"])
def test_the_command_is_run_for_a_killed_simulator_and_not_for_the_other(
    servetop: Servetop, tmp_path: Path, way: str
) -> None:
    recording, found = tmp_path / "watch.servetop", tmp_path / "told"
    command = shlex.join([sys.executable, "-I", "-c", WRITE, str(found)])
    with simulators(Servetop(tmp_path / "simulators"), 2) as (processes, urls):
        servers = (f"calm={urls[0]}", f"killed={urls[1]}")
        options = ("--record", str(recording), "--on-episode", command)
        with servetop.started("watch", *servers, way, *options) as process:
            wait_for(lambda: watching(recording), seconds=60, what="the first metrics")
            processes[1].kill()
            wait_for(lambda: told(found), seconds=60, what="the command")
            if way == "--detach":
                assert servetop("stop", "latest").code == 0
            else:
                process.send_signal(signal.SIGINT)
            process.communicate(timeout=120)
    assert kinds(found) == [("killed", "begins", "no response")]
    assert told(found)[0]["URL"] == urls[1]
    assert "stopped responding" in told(found)[0]["TEXT"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--on-episode", ""), "--on-episode: the command is empty"),
        (("--on-episode", "/nowhere/notify"), "--on-episode: cannot run '/nowhere/notify'"),
    ],
)
def test_a_command_that_cannot_be_run_is_refused_at_once(
    words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["watch", "http://127.0.0.1:9", "--headless", *words]) == 2
    assert message in capsys.readouterr().err
