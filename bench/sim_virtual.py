"""Speed of virtual time: simulated requests per second of one core, and a whole Table 4.

python bench/sim_virtual.py
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

from servetop.core.clock import MonotonicClock
from servetop.simulator.predict.arrivals import Bursts
from servetop.simulator.predict.lengths import SimLengths
from servetop.simulator.predict.predict import predict
from servetop.simulator.predict.presets import specs_of_preset
from servetop.simulator.predict.virtual_time import VirtualEngine
from servetop.simulator.scheduling.build import build_scheduler, sim_spec

PRESETS = Path(__file__).parents[1] / "run" / "servetop" / "run" / "presets"


def requests_per_second(lengths: SimLengths, *, count: int, batch: int) -> tuple[float, float]:
    """Simulated requests per second of wall time, and simulated seconds per second."""
    engine = VirtualEngine(
        build_scheduler(sim_spec("llama-2-7b", gpu="a100-40", engine="vllm-0.2.1", settings={"max_num_seqs": batch}))
    )
    arrivals = Bursts(lengths.requests(count, seed=0), per_burst=64)
    clock = MonotonicClock()
    ledger = engine.run(arrivals)
    elapsed = clock.now()
    return len(ledger.finished) / elapsed, ledger.ended_at / elapsed


def main() -> None:
    """Print four lines."""
    fixed, sharegpt = SimLengths(), SimLengths(kind="sharegpt")
    for name, lengths, batch in (
        ("128/128", fixed, 128),
        ("128/128, preempting", fixed, 256),
        ("ShareGPT", sharegpt, 256),
    ):
        rate, speed = requests_per_second(lengths, count=64 * 500, batch=batch)
        sys.stdout.write(f"{name}, batch {batch}: {rate:,.0f} requests/s, {speed:,.0f} x real time\n")
    data = tomllib.loads((PRESETS / "whitepaper-1-vllm.toml").read_text(encoding="utf-8"))
    result = predict(specs_of_preset(data))
    sys.stdout.write(f"whitepaper-1-vllm: {len(result['cells'])} cells in {result['elapsed_s']:.2f} s\n")


if __name__ == "__main__":
    main()
