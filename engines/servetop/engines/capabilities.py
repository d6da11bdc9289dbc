"""Capabilities of each engine, read from its adapter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from servetop.core.errors import EngineError
from servetop.core.events import EngineSample
from servetop.engines.engine import Engine
from servetop.engines.engine_registry import engine_names, load_engine
from servetop.engines.metrics.metrics_reader import (
    GAUGES,
    MetricMap,
    MetricsReader,
    not_exported,
    with_derived_kv_usage,
)

NOT_CHECKED = "not checked"
"""`installed` of an engine that servetop starts and whose adapter does not look for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capability:
    """The capabilities of one engine, known without a running server."""

    name: str
    title: str
    installed: str | None
    """The version that would be started, `yes`, or NOT_CHECKED; None: not on this machine."""
    endpoints: tuple[str, ...]
    """Values of `--endpoint`, the default first."""
    exports: tuple[str, ...]
    """Fields of EngineSample that it can export; an old version may export fewer."""
    batch_size: str
    """What the batch-size limit means in this engine, and how to change it."""
    changes_batch_size_live: bool
    install: str
    trouble: str = ""
    """Why its adapter cannot be loaded; empty when it can."""


def capabilities(names: Sequence[str] = ()) -> list[Capability]:
    """Return the capabilities of these engines, or of all; load errors are in `trouble`."""
    return [_capability(name) for name in names or engine_names()]


def _capability(name: str) -> Capability:
    try:
        return capability_of(load_engine(name))
    except EngineError as error:
        nothing: dict[str, tuple[str, ...]] = {"endpoints": (), "exports": ()}
        return Capability(
            name=name,
            title=name,
            installed=None,
            **nothing,
            batch_size="",
            changes_batch_size_live=False,
            install="",
            trouble=str(error),
        )


def capability_of(engine: Engine) -> Capability:
    """Return the capabilities that an adapter declares."""
    return Capability(
        name=engine.name,
        title=engine.title,
        installed=engine.installed() or (NOT_CHECKED if _starts_unchecked(engine) else None),
        endpoints=tuple(engine.endpoints),
        exports=exported(engine),
        batch_size=engine.batch_size_help,
        changes_batch_size_live=engine.changes_batch_size_live,
        install=engine.install_help,
    )


def _starts_unchecked(engine: Engine) -> bool:
    """Whether servetop starts this engine, and its adapter has no check of whether it is installed."""
    kind = type(engine)
    return kind.launch is not Engine.launch and kind.installed is Engine.installed


def exported(engine: Engine) -> tuple[str, ...]:
    """Return the fields of EngineSample that this engine can export, in their order."""
    reader = engine.metrics()
    missing = GAUGES if reader is None else _never_exported(reader)
    return tuple(name for name in GAUGES if name not in missing)


def _never_exported(reader: MetricsReader) -> tuple[str, ...]:
    if not isinstance(reader, MetricMap):
        return reader.missing({})
    known = dict.fromkeys(reader.fields, 1.0) | ({"kv_blocks_total": 1.0} if reader.cache else {})
    return not_exported(with_derived_kv_usage(EngineSample(scrape_start=0.0, scrape_end=0.0, **known)))
