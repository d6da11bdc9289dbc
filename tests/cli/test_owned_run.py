"""A run in a process of its own: what its owner hears when it does not begin."""

from __future__ import annotations

import signal
import tempfile
from pathlib import Path

import pytest

from servetop.cli.owned_run import OwnedRun, RunNotStarted
from servetop.core.config import RunConfig
from servetop.core.errors import ExitCode


async def test_a_run_that_cannot_record_gives_its_last_words_and_its_exit_code(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with tempfile.TemporaryFile("w+") as complaints:
        run = OwnedRun.start(RunConfig(), tmp_path / "file" / "run.servetop", complaints=complaints)
        with pytest.raises(RunNotStarted, match=r"^cannot record to ") as failure:
            await run.opened()
    assert failure.value.exit_code is ExitCode.RUN_FAILED
    assert run.ended


async def test_a_run_that_is_ended_before_it_records_says_by_which_signal(tmp_path: Path) -> None:
    with tempfile.TemporaryFile("w+") as complaints:
        run = OwnedRun.start(RunConfig(), tmp_path / "run.servetop", complaints=complaints)
        run.signal(signal.SIGKILL)
        with pytest.raises(RunNotStarted, match="ended by SIGKILL before it began to record") as failure:
            await run.opened()
    assert failure.value.exit_code is ExitCode.INTERRUPTED
