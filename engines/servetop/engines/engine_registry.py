"""The registry of engines: built-in ones and plug-ins of the entry-point group; listing the names imports no engine."""

from __future__ import annotations

import difflib
import importlib
from contextlib import suppress
from typing import TYPE_CHECKING

from servetop.core.errors import EngineError, UsageError

if TYPE_CHECKING:
    from servetop.engines.engine import Engine

GROUP = "servetop.engines"
BUILT_IN = {
    "deepspeed-mii": "servetop.engines.adapters.deepspeed_mii:DeepSpeedMiiEngine",
    "llama.cpp": "servetop.engines.adapters.llama_cpp:LlamaCppEngine",
    "openai": "servetop.engines.adapters.openai_compatible:OpenAIEngine",
    "ray-serve-llm": "servetop.engines.adapters.ray_serve:RayServeEngine",
    "sglang": "servetop.engines.adapters.sglang:SglangEngine",
    "sim": "servetop.simulator.adapter:SimEngine",
    "tensorrt-llm": "servetop.engines.adapters.tensorrt_llm:TensorRtLlmEngine",
    "tgi": "servetop.engines.adapters.tgi:TgiEngine",
    "transformers": "servetop.engines.adapters.transformers:TransformersEngine",
    "transformers-pipeline": "servetop.engines.adapters.transformers_pipeline:PipelineEngine",
    "triton-tensorrt-llm": "servetop.engines.adapters.triton:TritonEngine",
    "vllm": "servetop.engines.adapters.vllm:VllmEngine",
}
"""Entry points of servetop itself, as in pyproject.toml: usable without the slow lookup, and in a bare checkout."""


def engine_names() -> tuple[str, ...]:
    """Return the values of `--engine`, sorted."""
    return tuple(sorted({*BUILT_IN, *_locations()}))


def load_engine(name: str) -> Engine:
    """Return the engine of that name; UsageError, with similar names, if there is none."""
    location = BUILT_IN.get(name) or _locations().get(name)
    if location is None:
        near = difflib.get_close_matches(name.lower(), engine_names(), n=2)
        hint = f"did you mean {' or '.join(near)}?" if near else f"choose {', '.join(engine_names())}"
        raise UsageError(f"unknown engine {name!r}: {hint}")
    return _create(name, location)


def loadable_engines() -> list[Engine]:
    """Return all engines that can be loaded; a broken plug-in does not hide the others."""
    found = []
    for name in engine_names():
        with suppress(EngineError):
            found.append(load_engine(name))
    return found


def _locations() -> dict[str, str]:
    """Return `module:Class` by the name of each entry point."""
    from importlib.metadata import entry_points  # slow, and needed only for plug-ins

    return {point.name: point.value for point in entry_points(group=GROUP)}


def _create(name: str, location: str) -> Engine:
    module, _, attribute = location.partition(":")
    where = f"engine {name!r} ({location})"
    try:
        engine: Engine = getattr(importlib.import_module(module), attribute)()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a plug-in may raise anything, such as the panic of an extension in Rust
        raise EngineError(f"{where} cannot be loaded: {type(error).__name__}: {error}") from error
    if module.startswith("servetop."):
        return engine
    from servetop.engines.plug_in import checked

    return checked(engine, where)
