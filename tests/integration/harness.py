"""Driving servetop as a user would, and asking a real vLLM for its own numbers."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SCARCE_BLOCKS = [
    "--load-format",
    "dummy",
    "--max-model-len",
    "1024",
    "--enforce-eager",
    "--block-size",
    "32",
    "--num-gpu-blocks-override",
    "64",
    "--no-enable-prefix-caching",
]
ENVIRONMENT = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "VLLM_CPU_KVCACHE_SPACE": "1"}


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


@dataclass(frozen=True)
class Finished:
    """What a servetop command printed, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def summary(self) -> dict[str, Any]:
        summary: dict[str, Any] = json.loads(self.out)
        return summary


class Servetop:
    """The command line, run as a user would."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {**os.environ, **ENVIRONMENT, "SERVETOP_RECORDINGS": str(folder)}

    @contextlib.contextmanager
    def started(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        process = subprocess.Popen(
            [sys.executable, "-m", "servetop", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment,
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.wait()
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.close()
            process.stderr.close()

    def __call__(self, *words: str, timeout: float = 240.0) -> Finished:
        with self.started(*words) as process:
            out, err = process.communicate(timeout=timeout)
        return Finished(process.returncode, out, err)


def wait_for(condition: Any, *, seconds: float, what: str) -> Any:
    """The condition's first true value; the test fails when none comes in time."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"{what} did not happen within {seconds} s"
        time.sleep(0.05)
    return value


def answers(url: str) -> bool:
    """Somebody says 200 there."""
    try:
        with urllib.request.urlopen(url, timeout=2) as response:
            return bool(response.status == 200)
    except OSError:
        return False


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
