"""Finds a wire by the name of its dialect; a module is imported when its wire is asked for."""

from __future__ import annotations

import importlib
from typing import Protocol, cast

from servetop.simulator.dialects.server_dialect import Site, Wire

_PLACES = {
    "vllm": "vllm:VllmWire",
    "tgi": "tgi:TgiWire",
    "trtllm": "tensorrt_llm:TrtllmWire",
    "llama.cpp": "llama_cpp:LlamaWire",
    "triton": "triton:TritonWire",
    "sglang": "sglang:SglangWire",
    "mii": "mii:MiiWire",
    "transformers": "transformers:TransformersWire",
}


class WireKind(Protocol):
    """A class of wires: what is known before one is made."""

    profile: str
    title: str

    def __call__(self, site: Site) -> Wire:
        """The wire of one server."""
        ...


def wire_names() -> list[str]:
    """All dialects of the simulator's server; `vllm` is the default."""
    return list(_PLACES)


def wire_named(name: str) -> WireKind:
    """The wire of a name out of `wire_names`."""
    module, _, kind = _PLACES[name].partition(":")
    return cast(WireKind, getattr(importlib.import_module(f"servetop.simulator.dialects.{module}"), kind))
