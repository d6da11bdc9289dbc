"""An engine is started, monitored and stopped, and no process remains, however badly it behaves."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from servetop.core.clock import MonotonicClock
from servetop.core.config import EngineConfig
from servetop.core.errors import EngineError, UsageError
from servetop.core.events import LogLine
from servetop.engines.adapters.vllm import VllmEngine
from servetop.engines.engine import LaunchCommand
from servetop.engines.process import engine_process
from servetop.engines.process.ports import port_is_free
from servetop.engines.start import start_engine
from tests.harness import SLOW_MACHINE
from tests.reserved_port import reserved_port

Configured = Callable[..., EngineConfig]


def alive(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


async def until(clock: MonotonicClock, condition: Callable[[], bool], *, seconds: float = 10.0) -> float:
    """Wait for a condition; the seconds it took. The test fails when it does not come true in time."""
    began = clock.now()
    while not condition():
        assert clock.now() - began < seconds * SLOW_MACHINE, "it never came true"
        await clock.sleep_until(clock.now() + 0.01)
    return clock.now() - began


def children(lines: list[LogLine]) -> list[int]:
    return [int(line.text.split()[1]) for line in lines if line.text.startswith("child ")]


async def test_a_started_engine_is_known_can_be_sampled_and_leaves_nothing_behind(
    clock: MonotonicClock, stand_in: Configured
) -> None:
    lines: list[LogLine] = []
    config = stand_in("--children", "2", "--max-num-seqs", "32")
    handle = await start_engine(config, clock, on_line=lines.append, resets_cache=True)
    facts = handle.facts
    assert (lines[0].stream, lines[0].text) == (
        "servetop", f"vLLM starts as process {facts.pid}, to answer at {handle.url}",
    )  # fmt: skip
    assert psutil.Process(facts.pid).environ()["VLLM_SERVER_DEV_MODE"] == "1"  # has the endpoint of the reset
    assert (facts.title, facts.version, facts.model, facts.managed) == ("vLLM", "0.32.0", "/models/tiny-llama", True)
    assert (facts.kv_blocks_total, facts.block_size, facts.max_model_len, facts.max_num_seqs) == (63, 32, 1024, 32)
    assert facts.not_exported == ("max_num_seqs",)
    sample = await handle.sample()
    assert sample is not None
    assert sample.preemptions_total == 517
    assert 0 < sample.scrape_start < sample.scrape_end <= clock.now()
    assert [line.text for line in lines if "loading" in line.text] == ["loading weights", "loading weights 100%"]
    assert not any("GET /" in line.text for line in lines)
    assert await handle.set_max_num_seqs(64) is False

    report = await handle.stop()
    assert (report.leftover_pids, report.port_free, report.trouble) == ((), True, None)
    assert report.signals[:1] == ("SIGINT",)
    assert not handle.died.is_set()
    assert not [pid for pid in [facts.pid, *children(lines)] if pid and alive(pid)]
    assert (await handle.stop()).leftover_pids == ()


async def test_an_engine_that_ignores_every_polite_signal_is_killed_with_its_children(
    clock: MonotonicClock, stand_in: Configured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_process, "TERM_TIMEOUT", 0.3)
    lines: list[LogLine] = []
    handle = await start_engine(
        stand_in("--stubborn", "--children", "1", "--runaway-child"), clock, on_line=lines.append
    )
    monkeypatch.setattr(handle.engine, "stop_grace_period", 0.3)
    await until(clock, lambda: len(children(lines)) == 2)
    report = await handle.stop()
    assert report.signals == ("SIGINT", "SIGTERM", "SIGKILL")
    assert (report.leftover_pids, report.port_free, report.exit_code) == ((), True, -signal.SIGKILL)
    assert not any(alive(pid) for pid in children(lines))


async def test_an_engine_that_is_being_stopped_can_be_hurried(
    clock: MonotonicClock, stand_in: Configured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_process, "HURRIED_TIMEOUT", 0.1)
    monkeypatch.setattr(engine_process, "TERM_TIMEOUT", 600.0)
    monkeypatch.setattr(engine_process, "KILL_TIMEOUT", 600.0)
    handle = await start_engine(stand_in("--stubborn"), clock, on_line=lambda _: None)
    monkeypatch.setattr(handle.engine, "stop_grace_period", 600.0)
    stopping = asyncio.create_task(handle.stop())
    await asyncio.sleep(0.2)
    assert not stopping.done()
    handle.hurry()
    report = await stopping
    assert report.signals == ("SIGINT", "SIGTERM", "SIGKILL")
    assert report.leftover_pids == ()


@pytest.mark.parametrize(
    ("log", "words"),
    [
        ("fail_kv_too_small.log", "vLLM did not start: the KV cache is too small: To serve at least one request"),
        ("fail_portinuse.log", "vLLM did not start: its port was taken by another process"),
    ],
)
async def test_an_engine_that_exits_while_loading_is_reported_immediately(
    clock: MonotonicClock, stand_in: Configured, log: str, words: str
) -> None:
    with pytest.raises(EngineError) as caught:
        await start_engine(stand_in("--fail-like", log), clock, on_line=lambda _: None)
    assert str(caught.value).startswith(words)
    assert "\n" not in str(caught.value)
    assert 2 < len(caught.value.log_tail) <= 20


async def test_an_engine_that_is_never_ready_is_given_up_after_its_time(
    clock: MonotonicClock, stand_in: Configured
) -> None:
    lines: list[LogLine] = []
    for patience in (0.8, 4.0, 20.0):  # a slow machine needs longer to come as far as its child
        config = stand_in("--never-ready", "--children", "1", start_timeout=patience)
        with pytest.raises(EngineError, match=f"vLLM was not ready after {patience:g} s"):
            await start_engine(config, clock, on_line=lines.append)
        if children(lines):
            break
    assert children(lines)
    assert not any(alive(pid) for pid in children(lines))


async def test_a_health_check_counts_only_after_the_ready_line(
    clock: MonotonicClock, stand_in: Configured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def launch(self: VllmEngine, config: EngineConfig, *, port: int) -> LaunchCommand:
        return replace(plain(self, config, port=port), ready_line=line)

    plain = VllmEngine.launch
    monkeypatch.setattr(VllmEngine, "launch", launch)
    line = "Application startup complete."
    handle = await start_engine(stand_in(), clock, on_line=lambda _: None)
    await handle.stop()
    line = "never printed"
    lines: list[LogLine] = []
    for patience in (0.8, 4.0, 20.0):  # a slow machine needs longer until the server responds
        with pytest.raises(EngineError, match=f"vLLM was not ready after {patience:g} s"):
            await start_engine(stand_in(start_timeout=patience), clock, on_line=lines.append)
        if any("startup complete" in each.text for each in lines):
            break
    assert any("startup complete" in each.text for each in lines)


async def test_ctrl_c_while_loading_leaves_no_process(clock: MonotonicClock, stand_in: Configured) -> None:
    lines: list[LogLine] = []
    starting = asyncio.create_task(
        start_engine(stand_in("--never-ready", "--children", "2"), clock, on_line=lines.append)
    )
    await until(clock, lambda: any("100%" in line.text for line in lines))
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert len(children(lines)) == 2
    assert not any(alive(pid) for pid in children(lines))


async def test_a_killed_engine_is_noticed_and_its_orphans_are_removed(
    clock: MonotonicClock, stand_in: Configured
) -> None:
    lines: list[LogLine] = []
    handle = await start_engine(stand_in("--children", "1"), clock, on_line=lines.append)
    assert handle.facts.pid is not None
    os.kill(handle.facts.pid, signal.SIGKILL)
    assert await until(clock, handle.died.is_set) < 2.0
    assert handle.exit_reason().startswith("vLLM was killed by SIGKILL")
    assert handle.log_tail(1)
    assert await handle.sample() is None
    assert "connection refused" in (handle.metrics_trouble or "")
    report = await handle.stop()
    assert (report.signals, report.leftover_pids) == (("SIGTERM",), ())
    assert not any(alive(pid) for pid in children(lines))


async def test_an_engine_that_writes_without_end_does_not_hold_up_anything(
    clock: MonotonicClock, stand_in: Configured
) -> None:
    lines: list[LogLine] = []
    handle = await start_engine(stand_in("--flood"), clock, on_line=lines.append)
    began = clock.now()
    samples = [await handle.sample() for _ in range(4)]
    await until(clock, lambda: any("lines dropped" in line.text for line in lines))
    assert all(samples)
    assert len(lines) < 1100 + 250 * (clock.now() - began + 2)
    assert (await handle.stop()).leftover_pids == ()


async def test_a_port_in_use_is_reported_with_its_holder(clock: MonotonicClock, stand_in: Configured) -> None:
    config = stand_in()
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        taken = EngineConfig(name="vllm", model=config.model, command=config.command, port=port)
        with pytest.raises(EngineError, match=rf"port {port} is in use by process {os.getpid()} .*--port") as caught:
            await start_engine(taken, clock, on_line=lambda _: None)
    assert f"--url http://127.0.0.1:{port}" in str(caught.value)
    assert port_is_free(port)


async def test_a_given_port_is_used_from_either_option(clock: MonotonicClock, stand_in: Configured) -> None:
    with reserved_port() as port:
        handle = await start_engine(stand_in("--port", str(port)), clock, on_line=lambda _: None)
        assert handle.url == f"http://127.0.0.1:{port}"
        assert handle.launched is not None
        assert handle.launched.argv.count("--port") == 1
        assert handle.launched.port == port
        assert handle.launched.environment["VLLM_NO_USAGE_STATS"] == "1"
        assert handle.launched.environment["PATH"] == os.environ["PATH"]
        await handle.stop()


async def test_a_key_that_the_engine_logs_is_not_shown(
    clock: MonotonicClock, stand_in: Configured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLLM_API_KEY", "sk-secret")
    lines: list[LogLine] = []
    handle = await start_engine(replace(stand_in(), api_key_env="VLLM_API_KEY"), clock, on_line=lines.append)
    await handle.stop()
    shown = " ".join([*(line.text for line in lines), *handle.log_tail()])
    assert "api key is ***" in shown
    assert "sk-secret" not in shown


async def test_a_key_on_the_command_line_is_refused_because_it_would_be_recorded(
    clock: MonotonicClock, stand_in: Configured
) -> None:
    with pytest.raises(UsageError, match=r"--api-key would be recorded: export it .*--api-key-env") as caught:
        await start_engine(stand_in("--api-key=sk-secret"), clock, on_line=lambda _: None)
    assert "sk-secret" not in str(caught.value)


async def test_an_unknown_engine_names_its_neighbour(clock: MonotonicClock) -> None:
    with pytest.raises(UsageError, match="unknown engine 'vlm': did you mean vllm"):
        await start_engine(EngineConfig(name="vlm"), clock, on_line=lambda _: None)


async def test_an_engine_that_servetop_cannot_start_is_reported_with_how_to_attach(clock: MonotonicClock) -> None:
    with pytest.raises(EngineError, match=r"cannot start OpenAI-compatible server.*--url"):
        await start_engine(EngineConfig(name="openai"), clock, on_line=lambda _: None)


RUN = """
import asyncio, os, signal, sys
from servetop.core.clock import MonotonicClock
from servetop.core.config import EngineConfig
from servetop.engines.start import start_engine

async def main():
    command = (sys.executable, sys.argv[1])
    config = EngineConfig(name="vllm", model="org/m", command=command, extra_args=tuple(sys.argv[2:]))
    handle = await start_engine(config, MonotonicClock(), on_line=lambda line: print(line.text, flush=True))
    print("engine", handle.facts.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


async def test_the_engine_dies_with_a_killed_run_even_when_it_ignores_sigterm(clock: MonotonicClock) -> None:
    script = Path(__file__).with_name("stand_in_engine.py")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    run = await asyncio.create_subprocess_exec(
        sys.executable, "-c", RUN, str(script), "--children", "1", "--stubborn", env=env, stdout=subprocess.PIPE
    )
    output = (await run.communicate())[0].decode()
    pids = [int(text) for text in re.findall(r"^(?:engine|child) (\d+)$", output, re.MULTILINE)]
    assert run.returncode == -signal.SIGKILL
    assert len(pids) == 2
    await until(clock, lambda: not any(alive(pid) for pid in pids))
