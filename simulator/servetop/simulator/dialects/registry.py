"""The registry of simulated dialects (`--dialect`); modules are imported on demand."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Protocol, cast

from servetop.core.errors import UsageError
from servetop.simulator.dialects.server_dialect import EmulationOptions, ServerContext, ServerDialect

_CLASSES = {
    "vllm": "vllm:VllmServerDialect",
    "tgi": "tgi:TgiServerDialect",
    "trtllm": "tensorrt_llm:TensorRtLlmServerDialect",
    "llama.cpp": "llama_cpp:LlamaCppServerDialect",
    "triton": "triton:TritonServerDialect",
    "sglang": "sglang:SglangServerDialect",
    "mii": "mii:MiiServerDialect",
    "transformers": "transformers:TransformersServerDialect",
}
_USED_BY = {
    "metrics": ("--no-metrics", ("sglang", "llama.cpp")),
    "metrics_port": ("--metrics-port", ("triton",)),
    "max_concurrent_requests": ("--max-concurrent-requests", ("tgi",)),
    "per_request_metrics": ("--enable-per-request-metrics", ("vllm",)),
}
"""By field of EmulationOptions: its option, and the dialects that it changes."""

_NAMES_ITS_MODELS = {"triton": "ensemble and tensorrt_llm"}
"""The models of a dialect that has the same ones whatever it serves."""


class ServerDialectClass(Protocol):
    """The class of a simulated dialect."""

    profile: str
    title: str

    def __call__(self, context: ServerContext) -> ServerDialect:
        """Return the dialect of one server."""
        ...


def server_dialect_class(name: str) -> ServerDialectClass:
    """Return the dialect class of a name that `servetop serve --dialect` accepts."""
    module, _, kind = _CLASSES[name].partition(":")
    return cast(ServerDialectClass, getattr(importlib.import_module(f"servetop.simulator.dialects.{module}"), kind))


def check_emulation_options(name: str, options: EmulationOptions) -> None:
    """Raise UsageError for an option that does not change the dialect of this name."""
    usual = EmulationOptions()
    for field, (option, dialects) in _USED_BY.items():
        if name not in dialects and getattr(options, field) != getattr(usual, field):
            raise UsageError(f"{option} is for --dialect {' and '.join(dialects)}: leave it out with {name}")


def check_names(name: str, options: Mapping[str, object]) -> None:
    """Raise UsageError for a given option that names models, by option, where the dialect's have names of their own."""
    given = next((option for option, value in options.items() if value), None)
    if given is not None and name in _NAMES_ITS_MODELS:
        raise UsageError(f"the models of --dialect {name} are {_NAMES_ITS_MODELS[name]}: leave out {given}")
