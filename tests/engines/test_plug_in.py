"""A plug-in that raises, exits, blocks or returns something else is an error of one line and hides no other engine."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from servetop.core.clock import MonotonicClock
from servetop.core.config import EngineConfig
from servetop.core.errors import EngineError
from servetop.engines import plug_in
from servetop.engines.capabilities import NOT_CHECKED, capabilities, capability_of
from servetop.engines.control.control_client import HttpResults
from servetop.engines.engine import Engine, LaunchCommand
from servetop.engines.engine_registry import BUILT_IN, engine_names, load_engine, loadable_engines
from servetop.engines.inventory import startable_engines
from servetop.engines.plug_in import checked, in_background
from servetop.engines.start import start_engine

WHERE = "engine 'mine' (my.module:Mine)"


class Mine(Engine):
    """An engine that conforms."""

    name = "mine"
    title = "Mine"

    def match_score(self, results: HttpResults) -> int:
        return 1 if results else 0

    def launch(self, config: EngineConfig, *, port: int) -> LaunchCommand:
        return LaunchCommand(argv=("mine", config.model), port=port)


def bang(*_: object, **__: object) -> Any:
    return 1 // 0


def leave(*_: object, **__: object) -> Any:
    sys.exit(5)


def engine_with(members: Mapping[str, object]) -> Engine:
    kind: Callable[[], Engine] = type("Mine", (Mine,), dict(members))
    return checked(kind(), WHERE)


def test_an_engine_that_conforms_stays_as_it_is() -> None:
    engine = engine_with({})
    assert engine.launch(EngineConfig(model="m"), port=1).argv == ("mine", "m")
    assert (engine.match_score({}), engine.installed(), engine.metrics()) == (0, None, None)


def test_an_engine_that_servetop_starts_is_not_missing_because_its_plug_in_does_not_look_for_it() -> None:
    assert capability_of(engine_with({})).installed == NOT_CHECKED
    assert capability_of(engine_with({"installed": lambda _self: "2.0"})).installed == "2.0"
    assert capability_of(engine_with({"installed": lambda _self: None})).installed is None


@pytest.mark.parametrize(
    ("members", "error"),
    [
        ({"title": None}, "title is None, and must be str"),
        ({"stop_signal": "INT"}, "stop_signal is 'INT', and must be Signals"),
        ({"exported": (1,)}, "exported contains 1, and must hold instances of MetricSpec"),
        ({"scrape_period": "fast"}, "scrape_period is 'fast', and must be int or float"),
    ],
)
def test_an_attribute_of_another_type_is_named(members: dict[str, object], error: str) -> None:
    with pytest.raises(EngineError) as raised:
        engine_with(members)
    assert str(raised.value) == f"{WHERE}: {error}"


def test_a_class_that_is_no_engine_is_refused() -> None:
    with pytest.raises(EngineError, match="is not an engine: derive object from"):
        checked(object(), WHERE)


@pytest.mark.parametrize("method", [bang, leave, lambda *_, **__: ["a list"]])
@pytest.mark.parametrize(
    ("name", "arguments"),
    [("facts", ({},)), ("resolve_model", ("m",)), ("installed", ()), ("boot_facts", ([],)), ("failure_reason", ([],))],
)
def test_a_method_that_raises_exits_or_returns_something_else_is_named(
    name: str, arguments: tuple[object, ...], method: Callable[..., Any]
) -> None:
    engine = engine_with({name: method})
    with pytest.raises(EngineError) as raised:
        getattr(engine, name)(*arguments)
    assert str(raised.value).startswith(f"{WHERE}: {name} ")


def test_the_reason_names_the_error_of_the_plug_in() -> None:
    with pytest.raises(EngineError) as raised:
        engine_with({"launch": bang}).launch(EngineConfig(), port=1)
    assert str(raised.value).startswith(f"{WHERE}: launch failed: ZeroDivisionError: ")


class Reader:
    paths = ("/metrics",)
    sample = facts = missing = bang


def test_a_metrics_reader_that_raises_is_named() -> None:
    reader = engine_with({"metrics": lambda _: Reader()}).metrics()
    assert reader is not None
    with pytest.raises(EngineError, match="sample failed: ZeroDivisionError"):
        reader.sample({}, start=0.0, end=0.0)


class Broken(Mine):
    launch = installed = facts = match_score = bang


class Leaving:
    def __init__(self) -> None:
        sys.exit(5)


class Panic(BaseException):
    """As `pyo3_runtime.PanicException`, which is no Exception."""


class Panicking:
    def __init__(self) -> None:
        raise Panic("called `Option::unwrap()` on a `None` value")


@pytest.mark.parametrize("kind", ["Broken", "Leaving", "Panicking", "bang"])
def test_a_broken_plug_in_hides_no_other_engine(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BUILT_IN, "broken", f"tests.engines.test_plug_in:{kind}")
    assert {engine.name for engine in loadable_engines()} >= set(engine_names()) - {"broken"}
    assert all(each.match_score({}) == 0 for each in loadable_engines())
    assert [each.trouble != "" for each in capabilities(["broken", "sim"])] == [True, False]
    assert next(each.trouble for each in startable_engines() if each.name == "broken") != ""


class Hanging(Mine):
    released = threading.Event()

    def launch(self, config: EngineConfig, *, port: int) -> LaunchCommand:
        self.released.wait()
        return super().launch(config, port=port)

    def installed(self) -> str | None:
        self.released.wait()
        return None


def test_a_plug_in_that_hangs_is_named_where_engines_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BUILT_IN, "hanging", "tests.engines.test_plug_in:Hanging")
    monkeypatch.setattr(plug_in, "PATIENCE", 0.1)
    try:
        (listed,) = (each for each in startable_engines(patience=0.1) if each.name == "hanging")
        assert listed.trouble == "engine 'hanging': launch did not return within 0.1 s"
        (capability,) = capabilities(["hanging"])
        assert capability.trouble.endswith("installed did not return within 0.1 s")
    finally:
        Hanging.released.set()


async def test_a_start_ends_with_the_error_of_the_plug_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BUILT_IN, "broken", "tests.engines.test_plug_in:Broken")
    with pytest.raises(EngineError, match=r"engine 'broken' \(.*:Broken\): launch failed: ZeroDivisionError"):
        await start_engine(EngineConfig(name="broken"), MonotonicClock(0), on_line=lambda _: None)


async def test_a_call_that_blocks_can_be_cancelled() -> None:
    entered, release = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def block() -> None:
        loop.call_soon_threadsafe(entered.set)
        release.wait()

    call = asyncio.ensure_future(in_background(block))
    await entered.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    release.set()


def test_the_loader_checks_a_plug_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BUILT_IN, "broken", "tests.engines.test_plug_in:Reader")
    with pytest.raises(EngineError, match=r"engine 'broken' .* is not an engine"):
        load_engine("broken")
