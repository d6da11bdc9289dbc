"""Finds a wire by the name of its dialect; a module is imported when its wire is asked for."""

from __future__ import annotations

import importlib
from typing import Protocol, cast

from servetop.simulator.dialects.server_dialect import ServerContext, ServerDialect

_PLACES = {
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
    """A class of wires: what is known before one is made."""

    profile: str
    title: str

    def __call__(self, context: ServerContext) -> ServerDialect:
        """The wire of one server."""
        ...


def server_dialect_names() -> list[str]:
    """All dialects of the simulator's server; `vllm` is the default."""
    return list(_PLACES)


def server_dialect_class(name: str) -> ServerDialectClass:
    """The wire of a name out of `server_dialect_names`."""
    module, _, kind = _PLACES[name].partition(":")
    return cast(ServerDialectClass, getattr(importlib.import_module(f"servetop.simulator.dialects.{module}"), kind))
