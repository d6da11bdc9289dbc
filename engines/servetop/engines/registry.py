"""The engines that are installed, by name. Listing them imports none."""

from __future__ import annotations

import difflib
import importlib
from contextlib import suppress
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING

from servetop.core.errors import EngineError, UsageError

if TYPE_CHECKING:
    from servetop.engines.engine import Engine

GROUP = "servetop.engines"
BUILT_IN = {
    "openai": "servetop.engines.openai:OpenAIEngine",
    "sim": "servetop.engines.sim.engine:SimEngine",
    "vllm": "servetop.engines.vllm:VllmEngine",
}
"""Also there in a checkout that was never installed."""


def engine_names() -> tuple[str, ...]:
    """Names for `--engine`, sorted."""
    return tuple(sorted({*BUILT_IN, *(point.name for point in entry_points(group=GROUP))}))


def load_engine(name: str) -> Engine:
    """The engine of that name; UsageError, with the nearest names, when there is none."""
    points = {point.name: point for point in entry_points(group=GROUP)}
    if name in BUILT_IN and name not in points:
        points[name] = EntryPoint(name, BUILT_IN[name], GROUP)
    if name not in points:
        near = difflib.get_close_matches(name.lower(), engine_names(), n=2)
        hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(engine_names())}"
        raise UsageError(f"unknown engine {name!r}: {hint}")
    return _made(points[name])


def loadable_engines() -> list[Engine]:
    """All that can be loaded: somebody's broken package is no reason not to know the others."""
    found = []
    for name in engine_names():
        with suppress(EngineError):
            found.append(load_engine(name))
    return found


def _made(point: EntryPoint) -> Engine:
    module, _, attribute = point.value.partition(":")
    try:
        engine: Engine = getattr(importlib.import_module(module), attribute)()
    except Exception as error:  # a package of somebody else's may raise anything
        words = f"{type(error).__name__}: {error}"
        raise EngineError(f"engine {point.name!r} ({point.value}) cannot be loaded: {words}") from error
    return engine
