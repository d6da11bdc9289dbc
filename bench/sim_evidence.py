"""Compares the simulator with measurements on other GPUs, models and engines, for docs/explanation/simulator.md.

python bench/sim_evidence.py
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from servetop.core.config import StageConfig, WorkloadConfig
from servetop.simulator.model.sim_request import SimRequest
from servetop.simulator.predict.cell_clients import OpenLoop
from servetop.simulator.predict.predict import PredictSpec, predict_cell
from servetop.simulator.predict.virtual_time import VirtualEngine
from servetop.simulator.scheduling.build import build_scheduler, sim_spec
from servetop.simulator.validate import published

WORKLOAD = Path(published.__file__).parents[1] / "data" / "llmservingsim_workload.csv"
MEMGAP = WorkloadConfig(
    lengths="sharegpt:input_cap=1024,output_cap=2048,total_cap=2048,subset=8192,sample=2000,output_mean=292"
)
"""583,972 output tokens over 2000 requests."""


def memgap(settings: Mapping[str, Any] | None = None) -> list[tuple[int, float, float]]:
    """OPT-1.3b on an H100 64 GB: batch size, measured and simulated output tokens per second."""
    rows = []
    for row in published.rows("memgap_opt"):
        spec = PredictSpec(
            model="opt-1.3b",
            gpu="h100-64",
            engine_profile="vllm-0.5",
            workload=MEMGAP,
            settings={"kv_blocks": int(row["kv_blocks"]), **(settings or {})},
        )
        result = predict_cell(spec, StageConfig(max_num_seqs=int(row["max_num_seqs"]), num_prompts=2000))
        rows.append((int(row["max_num_seqs"]), float(row["output_tokens_per_s"]), result.output_throughput))
    return rows


def llmservingsim(gpu: str, settings: Mapping[str, Any]) -> dict[str, float]:
    """Llama-3.1-8B, vLLM 0.19, 300 ShareGPT requests: the study's latency statistics in ms."""
    with WORKLOAD.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    keys = {"max_model_len": 32768, "memory_utilization": 0.9, **settings}
    engine = VirtualEngine(build_scheduler(sim_spec("llama-3.1-8b", gpu=gpu, engine="vllm-current", settings=keys)))
    requests = [SimRequest(int(row["input_tokens"]), int(row["output_tokens"])) for row in rows]
    usage = engine.run(OpenLoop(requests, [float(row["arrival_time_s"]) for row in rows]))
    done = [(seq, seq.first_token_at or 0.0, seq.finished_at or 0.0) for seq in usage.finished]
    samples = {
        "TTFT": np.array([first - seq.arrival for seq, first, _ in done]),
        "TPOT": np.array([(end - first) / (seq.output_tokens - 1) for seq, first, end in done]),
        "latency": np.array([end - seq.arrival for seq, _, end in done]),
    }
    result = {f"mean {name}": 1e3 * float(values.mean()) for name, values in samples.items()}
    for share in (50, 99):
        result |= {f"p{share} {name}": 1e3 * float(np.percentile(values, share)) for name, values in samples.items()}
    return result


def main() -> None:
    """Print both tables."""
    say("| max_num_seqs | measured (tokens/s) | simulated | error |\n|---|---|---|---|")
    for batch, measured, simulated in memgap():
        say(f"| {batch} | {measured:,.0f} | {simulated:,.0f} | {simulated / measured - 1:+.1%} |")
    say("\n| card | statistic | measured (ms) | simulated | error |\n|---|---|---|---|---|")
    results: dict[str, dict[str, float]] = {}
    for row in published.rows("llmservingsim"):
        gpu = row["gpu"]
        if gpu not in results:
            blocks = {"kv_blocks": int(row["kv_blocks"])} if row["kv_blocks"] else {}
            results[gpu] = llmservingsim(gpu, {"max_num_seqs": int(row["max_num_seqs"]), **blocks})
        measured, simulated = float(row["measured_ms"]), results[gpu][row["statistic"]]
        say(f"| {gpu} | {row['statistic']} | {measured:,.1f} | {simulated:,.1f} | {simulated / measured - 1:+.1%} |")


def say(text: str) -> None:
    """Print one line of a table."""
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    main()
