"""What the authors of an engine are told of it before a person starts it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from servetop.core.events import EngineSample
from servetop.engines.conformance import problems_of
from servetop.engines.engine import Adapter, Engine
from servetop.engines.metrics.metrics_reader import MetricMap, gauge, not_exported
from servetop.engines.registry import BUILT_IN, load_engine
from servetop.engines.server_facts import ServerFacts

DATA = Path(__file__).parent / "data"
GUIDE = Path(__file__).parents[2] / "docs" / "engines" / "writing-an-engine.md"


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_our_own_engines_keep_to_it(name: str) -> None:
    assert problems_of(type(load_engine(name))) == []


@pytest.mark.parametrize("version", ["0.32.0", "0.6.6", "0.2.7"])
def test_what_a_real_page_lacks_is_named(version: str) -> None:
    page = (DATA / "vllm" / f"metrics_{version}.txt").read_bytes()
    assert problems_of(type(load_engine("vllm")), pages={"/metrics": page}) == []


class Forgetful:
    """A reader that knows of one field and says that nothing is missing."""

    paths = ("/stats",)

    def sample(self, pages: Any, *, start: float, end: float) -> EngineSample:
        return EngineSample(scrape_start=start, scrape_end=end, running=1.0)

    def facts(self, pages: Any) -> ServerFacts:
        return ServerFacts()

    def missing(self, pages: Any) -> tuple[str, ...]:
        return ("running", "speed")


class Bad(Adapter):
    name, title = "bad", "Bad"
    ready_path = "health"
    endpoints: Mapping[str, str] = {"generate": "tests.engines.test_conformance:BadWire"}

    def metrics(self) -> Any:
        return Forgetful()

    def boot_facts(self, lines: Any) -> ServerFacts:
        return ServerFacts(block_size=int(lines[0]))


class BadWire:
    path = "generate"

    def __init__(self, model: str) -> None: ...


def test_each_thing_that_servetop_would_stumble_over_is_a_line() -> None:
    problems = problems_of(cast("type[Engine]", Bad), pages={"/stats": b"{}"})
    assert "'health' is no path: ready_path and questions begin with /" in problems
    assert any(each.startswith("boot_facts of a log without known lines: ValueError") for each in problems)
    assert any("made as Class(model, continuous_usage=True): TypeError" in each for each in problems)
    assert "missing does not name waiting, which sample leaves empty" in problems
    assert "missing names running, which sample fills" in problems
    assert "missing names 'speed', which is no field of EngineSample" in problems


def test_an_engine_that_wants_arguments_is_told_so() -> None:
    class Wants(Bad):
        def __init__(self, port: int) -> None: ...

    (problem,) = problems_of(Wants)  # type: ignore[arg-type]
    assert problem.startswith("the engine is made without arguments")


def test_an_engine_that_is_no_adapter_is_told_what_it_lacks() -> None:
    assert "the engine has no launch (servetop.engines.engine.Engine)" in problems_of(object)  # type: ignore[arg-type]


def test_the_table_of_an_adapter_names_what_it_does_not_map() -> None:
    table = MetricMap(path="/stats", fields={"running": gauge("nimble_running")})
    pages = {"/stats": b"nimble_running 3\n"}
    assert table.missing(pages) == not_exported(table.sample(pages, start=0, end=0))


def test_the_guides_engine_and_its_test_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = dict(re.findall(r"^`([\w.]+)`\n\n```python\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL))
    for name, text in blocks.items():
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    tests: dict[str, Any] = {}
    exec(compile(blocks["test_nimble.py"], "test_nimble.py", "exec"), tests)
    called = [call() for name, call in tests.items() if name.startswith("test_")]
    assert len(called) == 1
