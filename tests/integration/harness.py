"""Where the real engines are installed, what they count themselves, and runs against them."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from servetop.core.clock import MonotonicClock
from servetop.recordings.read.reader import RecordingReader
from servetop.tui.state.frame import Frame, View
from servetop.tui.state.playhead import Playhead
from servetop.tui.state.run_state import RunState
from tests.clean_environment import MACHINE
from tests.harness import SLOW_MACHINE, Servetop, opened, received, wait_for
from tests.integration.real_engines import RealEngine, port_of, reserve

SCARCE = 64
"""KV blocks of 32 tokens, so few that vLLM must preempt."""
FLOAT32 = ("--dtype", "float32")
"""vLLM's kernels for bfloat16 died of illegal instructions on a virtual machine whose processor has AMX."""
SETTINGS = ("--load-format", "dummy", *FLOAT32, "--max-model-len", "1024", "--enforce-eager", "--block-size", "32")
WITHOUT_CACHE = "--no-enable-prefix-caching"
SCARCE_BLOCKS = (*SETTINGS, WITHOUT_CACHE, "--num-gpu-blocks-override", str(SCARCE))
ENVIRONMENT = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "VLLM_CPU_KVCACHE_SPACE": "1"}


def peak_is_possible(server: Mapping[str, Any], name: str, *, most: float) -> bool:
    """A peak of the summary's `server` is not above the engine's limit, or no page came in the load.

    It has no lower bound: pages are samples, and on a busy machine the peak may lie between two of them.
    """
    return bool(server["peaks_reason"]) if server[name] is None else 0 <= server[name] <= most


WHEN_ALL = ("transformers", "ray-serve-llm")
"""Engines that take minutes: they run where `SERVETOP_INTEGRATION` is `all`."""


@dataclass(frozen=True)
class Vllm:
    """Where the installed vLLM is."""

    home: Path

    @property
    def model(self) -> str:
        return str(self.home / "tiny-llama")

    @property
    def python(self) -> str:
        return str(self.home / "bin" / "python")

    @property
    def api_server(self) -> str:
        return f"{self.python} -m vllm.entrypoints.openai.api_server"

    @property
    def serve(self) -> str:
        return f"{self.home / 'bin' / 'vllm'} serve"


def vllm_server(vllm: Vllm, *settings: str, environment: Mapping[str, str] = ENVIRONMENT) -> RealEngine:
    """vLLM's server on a free port, as somebody else starts it."""
    reserved = (reserve(),)
    port = port_of(reserved[0])
    where = ("--model", vllm.model, "--host", "127.0.0.1", "--port", str(port))
    return RealEngine(
        name="vllm",
        reserved=reserved,
        argv=(*vllm.api_server.split(), *where, *SETTINGS, *settings),
        url=f"http://127.0.0.1:{port}",
        model=vllm.model,
        environment=environment,
        seconds=180.0 * SLOW_MACHINE,
    )


def warm_up(url: str, folder: Path) -> None:
    """vLLM's gauges move after a step, and its first ones take seconds: they would read as 0 requests meanwhile."""
    load = ("--max-concurrency", "24", "--num-prompts", "48", "--input-len", "12", "--output-len", "100")
    assert Servetop(folder, ENVIRONMENT)("--url", url, *load, "--json").summary["completed"] == 48


def cache() -> Path:
    """The folder outside the source tree that the install scripts fill."""
    return Path(MACHINE.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "servetop-integration"


def skip_unless_all(what: str) -> None:
    """Skip a test that takes minutes unless SERVETOP_INTEGRATION is `all`."""
    if os.environ.get("SERVETOP_INTEGRATION") != "all":
        pytest.skip(f"{what} runs with SERVETOP_INTEGRATION=all (make integration-all)")


def home_of(name: str) -> Path:
    """Where the engine is installed; without it the test is skipped, and says why."""
    if name in WHEN_ALL:
        skip_unless_all(name)
    home, log = cache() / name, cache() / f"{name}.log"
    if not (home / ".ready").exists():
        last = log.read_text(errors="replace").splitlines()[-5:] if log.exists() else ["it was not installed"]
        pytest.skip(f"NO REAL {name.upper()} HERE, its adapter is not proven (make integration): " + " | ".join(last))
    return home.resolve()


def only(*names: str) -> pytest.MarkDecorator:
    """The test gets each of these engines, running, as `server`."""
    return pytest.mark.parametrize("server", names, indirect=True)


def counters(url: str) -> dict[str, float]:
    """vLLM's own metrics by name, summed over labels."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=10) as response:
        lines = response.read().decode().splitlines()
    totals: dict[str, float] = {}
    for line in lines:
        if not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            totals[name.split("{")[0]] = totals.get(name.split("{")[0], 0.0) + float(value)
    return totals


@contextlib.contextmanager
def loaded(
    servetop: Servetop, words: list[str], recording: Path, *, seconds: float
) -> Iterator[tuple[subprocess.Popen[str], RecordingReader]]:
    """A run and its recording, once the first tokens have arrived; they must within `seconds`."""
    with servetop.started(*words) as process:
        reader = wait_for(lambda: opened(recording), seconds=30, what="the recording")
        wait_for(lambda: received(reader) or process.poll() is not None, seconds=seconds, what="the first tokens")
        assert process.poll() is None, process.communicate()[1]
        yield process, reader


def folded(recording: Path) -> RunState:
    """A recording as the dashboard reads it, all of it judged."""
    reader = RecordingReader.open(recording)
    state = RunState(reader.header)
    state.fold(reader.poll())
    return state


def frames(state: RunState, start: float, until: float) -> list[Frame]:
    """What a replay shows every half second between two times."""
    times = np.arange(start, until, 0.5)
    return [state.at(View(playhead=Playhead(at=float(at))), live=False) for at in times]


def run_time(reader: RecordingReader) -> float:
    """The current time on the clock of a recording."""
    return MonotonicClock(reader.header.anchor.origin_ns).now()


def kill_engine(reader: RecordingReader) -> float:
    """Kill the main process of the run's engine; the time on the recording's clock."""
    reader.refresh()
    facts = reader.header.engine
    assert facts is not None
    assert facts.pid is not None
    killed_at = run_time(reader)
    os.kill(facts.pid, signal.SIGKILL)
    return killed_at


def noticed_in_time(recording: Path, killed_at: float) -> bool:
    """Whether an error was noted within two seconds of the engine's end, in a file that is intact."""
    noticed = [note.at for note in RecordingReader.open(recording).poll().notes if note.severity == "error"]
    with contextlib.closing(sqlite3.connect(recording)) as connection:
        intact = connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    return intact and bool(noticed) and noticed[0] - killed_at <= 2.0 * SLOW_MACHINE
