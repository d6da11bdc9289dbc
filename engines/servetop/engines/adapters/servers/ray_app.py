"""One model behind Ray Serve LLM: `python ray_app.py MODEL --port 8000 --metrics-port 8080`; SIGTERM stops it and Ray.

servetop runs it with the Python that has Ray; it imports nothing from servetop.
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

NO_TELEMETRY = {"RAY_USAGE_STATS_ENABLED": "0", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
FAST_METRICS = {"RAY_metrics_report_interval_ms": "1000"}
"""Report interval of Ray's processes: the default is several seconds; values below 1 s have no effect."""
FORWARDED = ("HF_", "VLLM_", "CUDA_", "HIP_", "RAY_", "DO_NOT_TRACK")
"""Prefixes of environment variables that are passed to the replicas."""


def parse_arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("model")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--metrics-port", type=int, default=8080)
    parser.add_argument("--served-model-name", help="the model name in requests; default: the last part of MODEL")
    parser.add_argument("--accelerator", choices=["gpu", "cpu"], default="gpu")
    parser.add_argument("--num-replicas", type=int, default=1)
    parser.add_argument("--num-cpus", type=int, help="number of CPUs for Ray; default: those of the machine")
    parser.add_argument("--max-ongoing-requests", type=int, default=1_000_000, help="per replica, before Serve queues")
    parser.add_argument("--max-num-seqs", type=int)
    parser.add_argument("--max-model-len", type=int)
    parser.add_argument("--tensor-parallel-size", type=int)
    parser.add_argument("--dtype")
    parser.add_argument("--engine-kwargs", type=json.loads, default={}, help="JSON object of further options of vLLM")
    return parser.parse_args()


def configuration(options: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of ray.serve.llm's LLMConfig."""
    named = ("max_num_seqs", "max_model_len", "tensor_parallel_size", "dtype")
    engine = {name: value for name in named if (value := getattr(options, name)) is not None}
    replicas = {"min_replicas": options.num_replicas, "max_replicas": options.num_replicas}
    name = options.served_model_name or options.model.rstrip("/").rpartition("/")[2]
    return {
        "model_loading_config": {"model_id": name, "model_source": options.model},
        "accelerator_config": {"kind": options.accelerator},
        "deployment_config": {
            "autoscaling_config": replicas,
            "max_ongoing_requests": options.max_ongoing_requests,
        },
        "engine_kwargs": {**engine, **options.engine_kwargs},
        "log_engine_metrics": True,
        "runtime_env": {"env_vars": {k: v for k, v in os.environ.items() if k.startswith(FORWARDED)}},
    }


def main() -> None:
    """Serve until SIGTERM or SIGINT, then stop Ray's processes."""
    options = parse_arguments()
    os.environ.update(
        {name: value for name, value in {**NO_TELEMETRY, **FAST_METRICS}.items() if name not in os.environ}
    )
    ray, serve, llm = (
        import_module(name) for name in ("ray", "ray.serve", "ray.serve.llm")
    )  # they read the environment on import
    folder = tempfile.mkdtemp(prefix="ray")  # a short path: Ray makes sockets in it
    ray.init(
        num_cpus=options.num_cpus,
        include_dashboard=False,
        logging_level="WARNING",
        _metrics_export_port=options.metrics_port,
        _node_ip_address="127.0.0.1",
        _temp_dir=folder,
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))  # Ray's own handler, set by now, aborts while a model loads
    try:
        serve.start(http_options={"host": options.host, "port": options.port})
        app = llm.build_openai_app({"llm_configs": [llm.LLMConfig(**configuration(options))]})
        serve.run(app, name="llm", blocking=False)  # returns when the replicas are ready
        print("servetop: the model is ready", flush=True)  # noqa: T201 (read by servetop)
        threading.Event().wait()
    finally:
        serve.shutdown()
        ray.shutdown()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
