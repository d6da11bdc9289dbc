"""Finds a wire by the name of its dialect; a module is imported when its wire is asked for."""

from __future__ import annotations

import importlib
from typing import Protocol, cast

from servetop.engines.sim.wires.wire import Site, Wire

_PLACES = {
    "vllm": "api:VllmWire",
    "tgi": "wires.tgi:TgiWire",
    "trtllm": "wires.trtllm:TrtllmWire",
    "llama.cpp": "wires.llamacpp:LlamaWire",
    "triton": "wires.triton:TritonWire",
    "sglang": "wires.sglang:SglangWire",
    "mii": "wires.mii:MiiWire",
    "transformers": "wires.transformers:TransformersWire",
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
    return cast(WireKind, getattr(importlib.import_module(f"servetop.engines.sim.{module}"), kind))
