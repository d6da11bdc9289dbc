"""A real vLLM: where it is, and its own numbers."""

from __future__ import annotations

import urllib.request
from dataclasses import dataclass
from pathlib import Path

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
