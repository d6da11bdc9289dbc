"""vLLM's own client, `vllm bench serve`, as the load that a watch sees."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.harness import Servetop, wait_for
from tests.integration.harness import ENVIRONMENT, Vllm, counters
from tests.watched_server import watching

INPUT, OUTPUT = 12, 100
"""Tokens of each request: with 24 of them at a time, more than `harness.SCARCE_BLOCKS` holds."""
COUNTERS = {
    "prompt_tokens": "vllm:prompt_tokens_total",
    "generation_tokens": "vllm:generation_tokens_total",
    "preemptions": "vllm:num_preemptions_total",
}
"""vLLM's counters by their names in the summary's `server`."""


@dataclass(frozen=True)
class WatchedLoad:
    """One load of vLLM's own client, as three see it."""

    client: Mapping[str, Any]
    """What `vllm bench serve` wrote."""
    counted: Mapping[str, float]
    """Increases of the server's counters, by the names of `COUNTERS`."""
    summary: Mapping[str, Any]
    """`servetop summary --json` of the watch."""
    output: str
    """What the watch printed."""

    @property
    def watched(self) -> dict[str, float]:
        """What the watch counted, by the names of `COUNTERS`."""
        return {name: self.summary["server"][name] for name in COUNTERS}


def bench(vllm: Vllm, url: str, folder: Path, *, requests: int, rate: float = float("inf")) -> Mapping[str, Any]:
    """Send requests with vLLM's client and return its result.

    Args:
        rate: requests per second.

    Raises:
        subprocess.CalledProcessError: it failed; its output is in the exception.
    """
    command = (
        *(str(vllm.home / "bin" / "vllm"), "bench", "serve", "--backend", "openai", "--endpoint", "/v1/completions"),
        *("--base-url", url, "--model", vllm.model, "--dataset-name", "random", "--ignore-eos", "--disable-tqdm"),
        *("--random-input-len", str(INPUT), "--random-output-len", str(OUTPUT), "--num-prompts", str(requests)),
        *("--request-rate", str(rate), "--max-concurrency", "24"),
        *("--save-result", "--result-dir", str(folder), "--result-filename", "bench.json"),
    )
    environment = os.environ | ENVIRONMENT
    subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    result: Mapping[str, Any] = json.loads((folder / "bench.json").read_text())
    return result


def watch(vllm: Vllm, url: str, folder: Path, *, requests: int, rate: float = float("inf")) -> WatchedLoad:
    """Watch a vLLM, which must be idle, while its own client sends requests."""
    servetop, recording = Servetop(folder), folder / "watch.servetop"
    with servetop.started("watch", url, "--headless", "--json", "--record", str(recording)) as process:
        wait_for(lambda: watching(recording), seconds=60, what="the first metrics page")
        before = counters(url)
        client = bench(vllm, url, folder, requests=requests, rate=rate)
        after = counters(url)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    counted = {name: after[counter] - before[counter] for name, counter in COUNTERS.items()}
    return WatchedLoad(client, counted, servetop("summary", str(recording), "--json").summary, output)
