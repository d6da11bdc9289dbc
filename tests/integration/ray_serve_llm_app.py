"""Ray Serve LLM over vLLM without a GPU: one replica of a tiny model with few KV blocks, on this machine's loopback.

Runs in the environment of install_ray.sh: `python ray_serve_llm_app.py MODEL --port 8000 --metrics-port 8080`.
SIGTERM ends all of it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
import threading

ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
}
os.environ.update(ENVIRONMENT)  # before Ray is imported: it reads them then

import ray  # noqa: E402
from ray import serve  # noqa: E402
from ray.serve.llm import LLMConfig, build_openai_app  # noqa: E402


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--metrics-port", type=int, default=8080)
    parser.add_argument("--max-num-seqs", type=int, default=8)
    parser.add_argument("--num-gpu-blocks-override", type=int, default=64)
    return parser.parse_args()


def deployment(words: argparse.Namespace) -> LLMConfig:
    """The model `tiny`; `kind=cpu`, because Ray's default is a GPU."""
    engine = {
        "load_format": "dummy",
        # With 16 bits vLLM takes AMX on a processor that has it, and its worker dies under Ray (illegal instruction).
        "dtype": "float32",
        "max_num_seqs": words.max_num_seqs,
        "max_model_len": 1024,
        "enforce_eager": True,
        "block_size": 32,
        "num_gpu_blocks_override": words.num_gpu_blocks_override,
        "enable_prefix_caching": False,
    }
    return LLMConfig(
        model_loading_config={"model_id": "tiny", "model_source": words.model},
        accelerator_config={"kind": "cpu"},
        deployment_config={
            "autoscaling_config": {"min_replicas": 1, "max_replicas": 1},
            "max_ongoing_requests": 64,
            "ray_actor_options": {"num_cpus": 1},
        },
        engine_kwargs=engine,
        log_engine_metrics=True,
        runtime_env={"env_vars": ENVIRONMENT},
    )


def main() -> None:
    words = parsed()
    folder = tempfile.mkdtemp(prefix="ray")  # a short path: Ray makes sockets in it
    ray.init(
        num_cpus=4,
        num_gpus=0,
        include_dashboard=False,
        object_store_memory=200 * 2**20,
        logging_level="WARNING",
        _metrics_export_port=words.metrics_port,
        _node_ip_address="127.0.0.1",
        _temp_dir=folder,
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))  # Ray's own handler, set by now, aborts while a model loads
    try:
        serve.start(http_options={"host": "127.0.0.1", "port": words.port})
        serve.run(build_openai_app({"llm_configs": [deployment(words)]}), name="llm", blocking=False)
        threading.Event().wait()
    finally:
        serve.shutdown()
        ray.shutdown()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
