"""Checks engines of plug-ins and turns whatever their methods raise or wrongly return into errors of one line."""

from __future__ import annotations

import asyncio
import functools
import queue
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from servetop.analysis.exported.metric_spec import MetricSpec
from servetop.core.errors import EngineError, ServetopError
from servetop.engines.engine import BatchSizeChange, Engine, LaunchCommand
from servetop.engines.metrics.metrics_reader import MetricsReader
from servetop.engines.server_facts import ServerFacts

_Result = TypeVar("_Result")
_RETURNS: Mapping[str, tuple[type, ...]] = {
    "launch": (LaunchCommand,),
    "resolve_model": (str,),
    "facts": (ServerFacts,),
    "boot_facts": (ServerFacts,),
    "match_score": (int,),
    "metrics": (object,),
    "metrics_url": (str,),
    "installed": (str, type(None)),
    "failure_reason": (str, type(None)),
    "batch_size_change": (BatchSizeChange, type(None)),
}
"""The types that each method of an engine returns."""
_ATTRIBUTES: Mapping[str, tuple[type, ...]] = {
    "name": (str,),
    "title": (str,),
    "ready_path": (str,),
    "probe_paths": (tuple, list),
    "endpoints": (Mapping,),
    "exported": (tuple, list),
    "stop_signal": (signal.Signals,),
    "stop_grace_period": (int, float),
    "scrape_timeout": (int, float),
    "scrape_period": (int, float),
    "boot_patterns": (Mapping,),
    "failures": (tuple, list),
}
PATIENCE = 20.0
"""Seconds that a plug-in may take to tell what it would start, where all engines are listed."""
_READER = ("sample", "facts", "missing")


def checked(engine: Any, where: str) -> Engine:
    """Return the engine of a plug-in with guarded methods; EngineError for one that is none. `where` names it."""
    if not isinstance(engine, Engine):
        raise EngineError(
            f"{where} is not an engine: derive {type(engine).__name__} from servetop.engines.engine.Engine"
        )
    for name, types in _ATTRIBUTES.items():
        value = getattr(engine, name, None)
        if not isinstance(value, types):
            raise EngineError(f"{where}: {name} is {value!r}, and must be {_names(types)}")
    if wrong := [each for each in engine.exported if not isinstance(each, MetricSpec)]:
        raise EngineError(f"{where}: exported contains {wrong[0]!r}, and must hold instances of MetricSpec")
    for name, types in _RETURNS.items():
        setattr(engine, name, _guarded(getattr(engine, name), name, types, where=where))
    return engine


def _guarded(method: Callable[..., Any], name: str, types: tuple[type, ...], *, where: str) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(*arguments: Any, **options: Any) -> Any:
        try:
            if name == "installed":  # `servetop engines` asks all engines, and waits for none for ever
                result = within(PATIENCE, lambda: method(*arguments, **options), what=f"{where}: {name}")
            else:
                result = method(*arguments, **options)
        except (KeyboardInterrupt, ServetopError):
            raise
        except BaseException as error:  # also SystemExit, or the panic of an extension in Rust
            if name == "match_score":
                return 0  # it must not hide other engines
            raise EngineError(f"{where}: {name} failed: {reason_of(error)}") from error
        if not isinstance(result, types):
            raise EngineError(f"{where}: {name} returned {result!r}, and must return {_names(types)}")
        return _guarded_reader(result, where) if name == "metrics" else result

    return call


def _guarded_reader(reader: Any, where: str) -> MetricsReader | None:
    """Return a plug-in's own reader with guarded methods; those of servetop need no guard."""
    if reader is not None and not type(reader).__module__.startswith("servetop."):
        for name in _READER:
            setattr(reader, name, _guarded(getattr(reader, name), name, (object,), where=where))
    return reader  # type: ignore[no-any-return]


def reason_of(error: BaseException) -> str:
    """Return the type and text of an error that a plug-in raised: `ZeroDivisionError: bang`."""
    return f"{type(error).__name__}: {error}".rstrip(": ")


def _names(types: Sequence[type]) -> str:
    return " or ".join("None" if each is type(None) else each.__name__ for each in types)


def within(seconds: float, call: Callable[[], _Result], *, what: str) -> _Result:
    """Return the result of a call, or raise its error; EngineError, which names `what`, if it takes longer.

    The call then continues in a thread that does not keep the process alive.
    """
    done: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()

    def run() -> None:
        try:
            done.put((call(), None))
        except BaseException as error:
            done.put((None, error))

    threading.Thread(target=run, daemon=True, name="engine").start()
    try:
        result, error = done.get(timeout=seconds)
    except queue.Empty:
        raise EngineError(f"{what} did not return within {seconds:g} s") from None
    if error is not None:
        raise error
    return result  # type: ignore[no-any-return]


async def in_background(call: Callable[[], _Result]) -> _Result:
    """Return the result of a call that may block, from a thread that does not keep the process alive."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[_Result] = loop.create_future()

    def run() -> None:
        try:
            result = call()
        except BaseException as error:
            _report(loop, done.set_exception, error)
        else:
            _report(loop, done.set_result, result)

    def _report(loop: asyncio.AbstractEventLoop, report: Callable[[Any], None], outcome: object) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(lambda: None if done.done() else report(outcome))

    threading.Thread(target=run, daemon=True, name="engine").start()
    return await done
