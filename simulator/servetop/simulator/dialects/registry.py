"""The registry of simulated dialects (`--dialect`); modules are imported on demand."""

from __future__ import annotations

import importlib
from typing import Protocol, cast

from servetop.simulator.dialects.server_dialect import ServerContext, ServerDialect

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


class ServerDialectClass(Protocol):
    """The class of a simulated dialect."""

    profile: str
    title: str

    def __call__(self, context: ServerContext) -> ServerDialect:
        """Return the dialect of one server."""
        ...


def server_dialect_names() -> list[str]:
    """Return the names of all simulated dialects; `vllm` is the default."""
    return list(_CLASSES)


def server_dialect_class(name: str) -> ServerDialectClass:
    """Return the dialect class of a name from `server_dialect_names`."""
    module, _, kind = _CLASSES[name].partition(":")
    return cast(ServerDialectClass, getattr(importlib.import_module(f"servetop.simulator.dialects.{module}"), kind))
