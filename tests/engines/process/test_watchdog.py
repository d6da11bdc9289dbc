"""The watchdog of an engine keeps no secret of its command line in view."""

from __future__ import annotations

import sys

import psutil

from servetop.core.clock import MonotonicClock
from servetop.engines.process.engine_process import EngineProcess
from servetop.engines.process.log_filter import LogCapture
from tests.harness import SLOW_MACHINE

SECRET = "sesame-7f3a"
SERVER = "import time; print('ready', flush=True); time.sleep(600)"


def command_lines() -> list[str]:
    return [" ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"])]


async def test_no_process_shows_a_secret_that_the_engine_took_off_its_command_line(clock: MonotonicClock) -> None:
    log = LogCapture(clock, lambda line: None)
    process = await EngineProcess.start(
        ["env", f"MY_TOKEN={SECRET}", sys.executable, "-c", SERVER],
        env={},
        log=log,
        clock=clock,
        cleanup=["true", SECRET],
    )
    try:
        began = clock.now()
        while not any(SERVER in line and SECRET not in line for line in command_lines()):
            assert clock.now() - began < 10 * SLOW_MACHINE, "the engine did not start"
            await clock.sleep_until(clock.now() + 0.02)
        seen = command_lines()
        assert any("watchdog.py" in line for line in seen)
        assert not [line for line in seen if SECRET in line]
    finally:
        await process.stop(5.0)


async def test_long_arguments_and_bytes_that_are_not_utf_8_reach_the_engine(clock: MonotonicClock) -> None:
    words = ["\udcff", *("x" * 100_000 for _ in range(8))]
    lines: list[str] = []
    log = LogCapture(clock, lambda line: lines.append(line.text))
    script = "import os, sys; print(os.fsencode(sys.argv[1]), sum(map(len, sys.argv[2:])))"
    process = await EngineProcess.start([sys.executable, "-c", script, *words], env={}, log=log, clock=clock)
    await process.exited.wait()
    await process.stop(5.0)
    assert lines == ["b'\\xff' 800000"]
