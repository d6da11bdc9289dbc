"""Prints the statistics that vLLM computes from the lists of a result file, as JSON; runs in its environment."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

from vllm.benchmarks.lib.endpoint_request_func import RequestFuncOutput
from vllm.benchmarks.serve import calculate_metrics

METRICS = ("ttft", "tpot", "itl", "e2el")


def outputs_of(result: dict[str, Any]) -> list[RequestFuncOutput]:
    """Each request as vLLM keeps it during a benchmark."""
    names = {
        "generated_text": "generated_texts", "latency": "latencies", "output_tokens": "output_lens", "ttft": "ttfts",
        "itl": "itls", "prompt_len": "input_lens", "error": "errors", "start_time": "start_times",
    }  # fmt: skip
    return [
        RequestFuncOutput(success=not error, **{name: result[key][number] for name, key in names.items()})
        for number, error in enumerate(result["errors"])
    ]


def main() -> None:
    result = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    with contextlib.redirect_stdout(io.StringIO()):
        metrics, lengths = calculate_metrics(
            input_requests=[], outputs=outputs_of(result), dur_s=result["duration"], tokenizer=None,
            selected_percentiles=[50, 90, 95, 99], goodput_config_dict={},
        )  # fmt: skip
    found: dict[str, object] = {
        "completed": metrics.completed, "failed": metrics.failed, "total_input_tokens": metrics.total_input,
        "total_output_tokens": metrics.total_output, "output_lens": lengths,
        "request_throughput": metrics.request_throughput, "output_throughput": metrics.output_throughput,
        "total_token_throughput": metrics.total_token_throughput,
    }  # fmt: skip
    for metric in METRICS:
        for name in ("mean", "median", "std"):
            found[f"{name}_{metric}_ms"] = float(getattr(metrics, f"{name}_{metric}_ms"))
        for q, value in getattr(metrics, f"percentiles_{metric}_ms"):
            found[f"p{q}_{metric}_ms"] = float(value)
    sys.stdout.write(json.dumps(found))  # noqa: TID251


if __name__ == "__main__":
    main()
