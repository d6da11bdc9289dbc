"""Watches a real vLLM under vLLM's own client: `python bench/watch_vllm.py [--minutes 10] [--rate 20]`.

Needs the vLLM of `make integration`. The KV cache is so small that vLLM must preempt. Prints what the server's own
counters, `vllm bench serve` and the watch counted, and what the watch found; ends with exit code 1 where they differ.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.integration.harness import SCARCE, WITHOUT_CACHE, Vllm, cache, vllm_server, warm_up
from tests.integration.real_engines import started
from tests.integration.vllm_bench import COUNTERS, WatchedLoad, watch

CLIENT = {"prompt_tokens": "total_input_tokens", "generation_tokens": "total_output_tokens"}
"""The totals of `vllm bench serve` by the names of `COUNTERS`."""


def report(load: WatchedLoad) -> bool:
    """Print the table and return whether all counted the same."""
    print(f"{'':20}{'server':>12}{'vllm bench':>12}{'watch':>12}")
    for name in COUNTERS:
        of_client = f"{load.client[CLIENT[name]]:,}" if name in CLIENT else ""
        print(f"{name:20}{load.counted[name]:12,.0f}{of_client:>12}{load.watched[name]:12,.0f}")
    completed, watched = load.client["completed"], load.summary["watched"]["requests"]
    print(f"{'requests':20}{'':12}{completed:12,}{watched:12,.0f}")
    print(f"{load.client['duration']:.0f} s of load. The watch says: {load.summary['headline']}")
    of_client = all(load.client[theirs] == load.counted[ours] for ours, theirs in CLIENT.items())
    return of_client and load.watched == load.counted and completed == watched


def main() -> int:
    """Start vLLM, watch it under the load, and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--rate", type=float, default=20.0, help="requests per second")
    options = parser.parse_args()
    vllm = Vllm((cache() / "vllm").resolve())
    engine = vllm_server(vllm, "--num-gpu-blocks-override", str(SCARCE), WITHOUT_CACHE)
    with tempfile.TemporaryDirectory() as name, started(engine, Path(name) / "log"):
        folder = Path(name)
        warm_up(engine.url, folder / "warm-up")
        requests = round(60 * options.minutes * options.rate)
        load = watch(vllm, engine.url, folder, requests=requests, rate=options.rate)
    return 0 if report(load) else 1


if __name__ == "__main__":
    sys.exit(main())
