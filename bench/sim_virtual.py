"""Speed of virtual time: simulated requests per second of one core, and a whole Table 4.

python bench/sim_virtual.py
"""

from __future__ import annotations

import sys

from servetop.cli.configuration.prediction import predict_specs
from servetop.core.clock import MonotonicClock
from servetop.core.config import StageConfig, WorkloadConfig
from servetop.simulator.predict.cell_clients import VirtualSender
from servetop.simulator.predict.predict import predict
from servetop.simulator.predict.virtual_time import VirtualEngine
from servetop.simulator.scheduling.build import build_scheduler, sim_spec

SHAREGPT = "sharegpt:input_cap=2048,output_cap=2048,total_cap=4096"


def requests_per_second(workload: WorkloadConfig, *, count: int, batch: int) -> tuple[float, float]:
    """Simulated requests per second of wall time, and simulated seconds per second."""
    spec = sim_spec("llama-2-7b", gpu="a100-40", engine="vllm-0.2.1", settings={"max_num_seqs": batch})
    client = VirtualSender(workload, spec, seed=0).client(StageConfig(request_rate=64, num_prompts=count))
    engine = VirtualEngine(build_scheduler(spec))
    clock = MonotonicClock()
    usage = engine.run(client)
    elapsed = clock.now()
    return len(usage.finished) / elapsed, usage.ended_at / elapsed


def main() -> None:
    """Print four lines."""
    for name, lengths, batch in (
        ("128/128", "", 128),
        ("128/128, preempting", "", 256),
        ("ShareGPT", SHAREGPT, 256),
    ):
        workload = WorkloadConfig(lengths=lengths, arrivals="in-process-burst")
        rate, speed = requests_per_second(workload, count=64 * 500, batch=batch)
        sys.stdout.write(f"{name}, batch {batch}: {rate:,.0f} requests/s, {speed:,.0f} x real time\n")
    result = predict(predict_specs("whitepaper-1-vllm"))
    sys.stdout.write(f"whitepaper-1-vllm: {len(result.cells)} cells in {result.elapsed_s:.2f} s\n")


if __name__ == "__main__":
    main()
