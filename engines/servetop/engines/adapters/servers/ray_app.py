"""One model behind Ray Serve LLM: `python ray_app.py MODEL --port 8000 --metrics-port 8080`; SIGTERM ends all of it.

Run by servetop with the Python that has Ray; it imports nothing of servetop.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import threading
from importlib import import_module
from typing import Any

QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
FRESH = {"RAY_metrics_report_interval_ms": "1000"}
"""How often Ray's processes report: their own default is several seconds, and below one second nothing changes."""
FORWARDED = ("HF_", "VLLM_", "CUDA_", "HIP_", "RAY_", "DO_NOT_TRACK")
"""Variables, by their beginnings, that the replicas get too."""


def parsed() -> argparse.Namespace:
    """Its command line."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("model")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--metrics-port", type=int, default=8080)
    parser.add_argument("--served-model-name", help="the name that requests ask for; else the last part of MODEL")
    parser.add_argument("--accelerator", choices=["gpu", "cpu"], default="gpu")
    parser.add_argument("--num-replicas", type=int, default=1)
    parser.add_argument("--num-cpus", type=int, help="processors that Ray counts with; else those of the machine")
    parser.add_argument("--max-ongoing-requests", type=int, default=1_000_000, help="of a replica, before Serve queues")
    parser.add_argument("--max-num-seqs", type=int)
    parser.add_argument("--max-model-len", type=int)
    parser.add_argument("--tensor-parallel-size", type=int)
    parser.add_argument("--dtype")
    parser.add_argument("--engine-kwargs", type=json.loads, default={}, help="JSON object of further options of vLLM")
    return parser.parse_args()


def configuration(words: argparse.Namespace) -> dict[str, Any]:
    """Of ray.serve.llm's LLMConfig."""
    named = ("max_num_seqs", "max_model_len", "tensor_parallel_size", "dtype")
    engine = {name: value for name in named if (value := getattr(words, name)) is not None}
    replicas = {"min_replicas": words.num_replicas, "max_replicas": words.num_replicas}
    name = words.served_model_name or words.model.rstrip("/").rpartition("/")[2]
    return {
        "model_loading_config": {"model_id": name, "model_source": words.model},
        "accelerator_config": {"kind": words.accelerator},
        "deployment_config": {
            "autoscaling_config": replicas,
            "max_ongoing_requests": words.max_ongoing_requests,
        },
        "engine_kwargs": {**engine, **words.engine_kwargs},
        "log_engine_metrics": True,
        "runtime_env": {"env_vars": {k: v for k, v in os.environ.items() if k.startswith(FORWARDED)}},
    }


def main() -> None:
    """Serve until a signal comes; Ray's processes end with it."""
    words = parsed()
    os.environ.update({name: value for name, value in {**QUIET, **FRESH}.items() if name not in os.environ})
    ray, serve, llm = (import_module(name) for name in ("ray", "ray.serve", "ray.serve.llm"))  # they read it now
    folder = tempfile.mkdtemp(prefix="ray")  # a short path: Ray makes sockets in it
    ray.init(
        num_cpus=words.num_cpus,
        include_dashboard=False,
        logging_level="WARNING",
        _metrics_export_port=words.metrics_port,
        _node_ip_address="127.0.0.1",
        _temp_dir=folder,
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))  # Ray's own handler, set by now, aborts while a model loads
    try:
        serve.start(http_options={"host": words.host, "port": words.port})
        app = llm.build_openai_app({"llm_configs": [llm.LLMConfig(**configuration(words))]})
        serve.run(app, name="llm", blocking=False)
        threading.Event().wait()
    finally:
        serve.shutdown()
        ray.shutdown()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
