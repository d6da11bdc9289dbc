"""The options of `servetop serve`, the simulator's server."""

import math
from collections.abc import Sequence
from functools import partial
from typing import Annotated

from servetop.cli.options import completions
from servetop.cli.options.declaration import Option, options_class
from servetop.core.errors import UsageError

_simulated, _server, _emulated = (partial(Option, panel=panel) for panel in ("Simulation", "Server", "Emulation"))
_MAX_PORT = 65535


def _time_scale(text: str) -> float:
    """Return a factor above 0."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0.0 < value < math.inf:
        raise UsageError(f"invalid --time-scale {text}: use a number above 0")
    return value


def _names(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the names of one or several texts, each of which may hold several."""
    return tuple(" ".join(texts).split())


@options_class
class ServedOptions:
    """What is simulated, by which profiles, and how they are changed."""

    model: Annotated[
        str, _simulated("--model", "Model profile.", unit="MODEL", complete=completions.models, brief="Model profile.")
    ] = "llama-2-7b"
    gpu: Annotated[
        str, _simulated("--gpu", "GPU profile.", unit="NAME", complete=completions.gpus, brief="GPU profile.")
    ] = "a100-40"
    engine_profile: Annotated[
        str,
        _simulated(
            "--engine-profile",
            "Engine generation, as in vllm-0.2.1.",
            unit="NAME",
            default="the dialect's",
            complete=completions.engine_profiles,
            brief="Engine generation, as in vllm-0.2.1.",
        ),
    ] = ""
    policy: Annotated[
        str | None, _simulated("--policy", "Scheduling policy.", unit="NAME", default="the engine profile's")
    ] = None
    max_num_seqs: Annotated[
        int | None,
        _simulated(
            "--max-num-seqs", "Batch size limit.", minimum=1, default="the engine profile's", brief="Batch size limit."
        ),
    ] = None
    kv_blocks: Annotated[
        int | None,
        _simulated(
            "--kv-blocks", "KV blocks.", unit="BLOCKS", minimum=1, default="what fits into the GPU", brief="KV blocks."
        ),
    ] = None
    block_size: Annotated[
        int | None,
        _simulated("--block-size", "Size of a KV block.", unit="TOKENS", minimum=1, default="the engine profile's"),
    ] = None
    max_model_len: Annotated[
        int | None,
        _simulated("--max-model-len", "Context length.", unit="TOKENS", minimum=1, default="the model's"),
    ] = None
    tensor_parallel: Annotated[int, _simulated("--tensor-parallel", "Number of GPUs.", unit="GPUS", minimum=1)] = 1
    time_scale: Annotated[
        float,
        _simulated(
            "--time-scale",
            "Factor of every duration: 0.1 is ten times as fast.",
            unit="FACTOR",
            parse=_time_scale,
            brief="Factor of every duration.",
        ),
    ] = 1.0
    seed: Annotated[
        int, _simulated("--seed", "Seed of the output lengths of requests without ignore_eos.", unit="SEED")
    ] = 0


@options_class
class EmulatedOptions:
    """What is particular to the engines whose APIs are emulated."""

    dialect: Annotated[
        str,
        _emulated(
            "--dialect",
            "Engine whose HTTP API and metrics are emulated.",
            unit="NAME",
            choices=("vllm", "tgi", "trtllm", "llama.cpp", "triton", "sglang", "mii", "transformers"),
            brief="vllm, tgi, trtllm, llama.cpp, triton, sglang, mii or transformers",
        ),
    ] = "vllm"
    metrics_port: Annotated[
        int,
        _emulated(
            "--metrics-port",
            "triton: port of the metrics page.",
            minimum=0,
            maximum=_MAX_PORT,
            default="--port plus 2",
        ),
    ] = 0
    no_metrics: Annotated[bool, _emulated("--no-metrics", "sglang, llama.cpp: serve no metrics page.")] = False
    enable_per_request_metrics: Annotated[
        bool, _emulated("--enable-per-request-metrics", "vllm: report each request's queue and prefill time.")
    ] = False
    max_concurrent_requests: Annotated[
        int,
        _emulated(
            "--max-concurrent-requests",
            "tgi: reject further requests with status 429.",
            unit="REQUESTS",
            minimum=1,
        ),
    ] = 128


@options_class
class ServeOptions:
    """The options of `servetop serve`."""

    host: Annotated[str, _server("--host", "Address to listen at.", unit="ADDRESS", brief="Address to listen at.")] = (
        "127.0.0.1"
    )
    port: Annotated[
        int,
        _server(
            "--port", "Port to listen at; 0 for a free one.", minimum=0, maximum=_MAX_PORT, brief="Port to listen at."
        ),
    ] = 8000
    served_model_name: Annotated[
        str, _server("--served-model-name", "Name that clients use.", unit="NAME", default="--model as given")
    ] = ""
    lora_modules: Annotated[
        tuple[str, ...],
        _server(
            "--lora-modules",
            "Further served names, at no cost, as in a b=path.",
            unit="NAME[=PATH]",
            repeat=True,
            parse=_names,
        ),
    ] = ()
    api_key_env: Annotated[
        str | None,
        _server("--api-key-env", "Environment variable with the API key that requests need.", unit="VARIABLE"),
    ] = None
    served: ServedOptions = ServedOptions()
    emulated: EmulatedOptions = EmulatedOptions()
