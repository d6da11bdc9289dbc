"""An engine in a container: started, always removed, with errors of one line."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from servetop.core.clock import MonotonicClock
from servetop.core.config import EngineConfig
from servetop.core.errors import EngineError
from servetop.engines.engine_registry import load_engine
from servetop.engines.start import start_engine

RUNTIME = """#!/bin/sh
'''''exec' {python} "$0" "$@" # a first line names no interpreter whose path has blanks
' '''
import os, sys
words = sys.argv[1:]
with open({seen!r}, "a") as seen:
    seen.write(" ".join(words) + "\\n")
if words[0] == "run":
    program = words[words.index("--entrypoint") + 1]
    arguments = words[words.index("an-image") + 1 :]
    os.execv(sys.executable, [sys.executable, *arguments])
"""
"""A runtime without containers: what stands after the image is run as it is."""


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `docker` of ours, first on the path; the file that gets its command lines."""
    seen, program = tmp_path / "seen", tmp_path / "docker"
    program.write_text(RUNTIME.format(python=shlex.quote(sys.executable), seen=str(seen)))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    return seen


async def test_an_engine_is_run_by_the_runtime_and_nothing_is_left_of_its_container(
    clock: MonotonicClock, stand_in: Callable[..., EngineConfig], runtime: Path
) -> None:
    config = replace(stand_in("--max-num-seqs", "32"), launcher="docker", image="an-image")
    handle = await start_engine(config, clock, on_line=lambda _: None)
    assert (handle.facts.title, handle.facts.max_num_seqs) == ("vLLM", 32)
    report = await handle.stop()
    assert (report.leftover_pids, report.port_free) == ((), True)
    ran, removed = runtime.read_text().splitlines()
    name = ran.split("--name ")[1].split()[0]
    assert removed == f"rm --force --volumes {name}"
    assert f"-p 127.0.0.1:{handle.url.rsplit(':')[-1]}" in ran


RUN = """
import asyncio, dataclasses, os, signal, sys
from servetop.core.clock import MonotonicClock
from servetop.core.config import EngineConfig
from servetop.engines.engine_registry import load_engine
from servetop.engines.start import start_engine

async def main():
    command = (sys.executable, sys.argv[1])
    config = EngineConfig(name="vllm", model="org/m", command=command, launcher="docker", image="an-image")
    await start_engine(config, MonotonicClock(), on_line=lambda line: None)
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


async def test_a_container_is_removed_when_the_run_is_killed(
    clock: MonotonicClock, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path for path in sys.path if path))
    script = Path(__file__).with_name("stand_in_engine.py")
    run = await asyncio.create_subprocess_exec(sys.executable, "-c", RUN, str(script))
    assert await run.wait() == -signal.SIGKILL
    until = clock.now() + 20
    while len(words := runtime.read_text().splitlines()) < 2 and clock.now() < until:
        await clock.sleep_until(clock.now() + 0.05)
    assert words[1] == f"rm --force --volumes {words[0].split('--name ')[1].split()[0]}"


async def test_a_runtime_that_is_not_installed_names_the_other_one(
    clock: MonotonicClock, stand_in: Callable[..., EngineConfig], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    config = replace(stand_in(), launcher="podman", image="an-image")
    with pytest.raises(EngineError, match=r"^podman is not installed here: install it, or give --launcher docker$"):
        await start_engine(config, clock, on_line=lambda _: None)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            "docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock.",
            "docker's daemon is not running",
        ),
        ("Error: initializing source docker://localhost/none:latest: pinging", "its image could not be fetched"),
        ("docker: Error response from daemon: pull access denied for an-image", "its image could not be fetched"),
        ("Error: container-init binary not found on the host: stat /usr/libexec/podman/catatonit", "package catatonit"),
        ("ERROR (catatonit:6): failed to exec pid1: No such file or directory", "its image has no such program"),
        ('could not select device driver "" with capabilities: [[gpu]].', "install the NVIDIA Container Toolkit"),
        ("Error: unresolvable CDI devices nvidia.com/gpu=all", "install the NVIDIA Container Toolkit"),
        ("Bind for 127.0.0.1:8000 failed: port is already allocated.", "its port was taken by another process"),
    ],
)
@pytest.mark.parametrize("name", ["vllm", "llama.cpp", "tgi", "triton-tensorrt-llm", "sglang"])
def test_an_error_of_a_runtime_is_reported_in_one_line(name: str, line: str, words: str) -> None:
    assert words in (load_engine(name).failure_reason(["INFO all is well", line]) or "")
