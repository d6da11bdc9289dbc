"""The conformance checks, applied to the built-in engines, to broken ones and to the guide's example."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from servetop.core.events import EngineSample
from servetop.engines.conformance import find_problems
from servetop.engines.control.control_client import HttpResults
from servetop.engines.engine import Engine
from servetop.engines.engine_registry import BUILT_IN, load_engine
from servetop.engines.metrics.metrics_reader import MetricMap, gauge, not_exported
from servetop.engines.metrics.spec_builders import rate_of, ratio_of
from servetop.engines.server_facts import ServerFacts

DATA = Path(__file__).parent / "data"
GUIDE = Path(__file__).parents[2] / "docs" / "engines" / "writing-an-engine.md"


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_built_in_engines_conform(name: str) -> None:
    assert find_problems(type(load_engine(name))) == []


@pytest.mark.parametrize("version", ["0.32.0", "0.6.6", "0.2.7"])
def test_fields_missing_from_real_pages_are_named(version: str) -> None:
    page = (DATA / "vllm" / f"metrics_{version}.txt").read_bytes()
    assert find_problems(type(load_engine("vllm")), pages={"/metrics": page}) == []


class Forgetful:
    """A reader that knows of one field and says that nothing is missing."""

    paths = ("/stats",)

    def sample(self, pages: Any, *, start: float, end: float) -> EngineSample:
        return EngineSample(scrape_start=start, scrape_end=end, running=1.0)

    def facts(self, pages: Any) -> ServerFacts:
        return ServerFacts()

    def missing(self, pages: Any) -> tuple[str, ...]:
        return ("running", "speed")


class Bad(Engine):
    name, title = "bad", "Bad"
    ready_path = "health"
    exported = (rate_of("G", "steps", "bad_steps"), ratio_of("G", "hits", "bad_hits", "bad_lookups"))
    endpoints: Mapping[str, str] = {"generate": "tests.engines.test_conformance:BadDialect"}

    def match_score(self, results: HttpResults) -> int:
        return 0

    def metrics(self) -> Any:
        return Forgetful()

    def boot_facts(self, lines: Any) -> ServerFacts:
        return ServerFacts(block_size=int(lines[0]))


class BadDialect:
    path = "generate"

    def __init__(self, model: str) -> None: ...


def test_each_problem_is_reported_in_one_line() -> None:
    problems = find_problems(cast("type[Engine]", Bad), pages={"/stats": b"bad_steps_total 3\n"})
    assert "'health' is not a path: ready_path and probe_paths must begin with /" in problems
    assert any(each.startswith("boot_facts of a log without known lines: ValueError") for each in problems)
    assert any("made as Class(model, continuous_usage=True): TypeError" in each for each in problems)
    assert "missing does not name waiting, which sample leaves empty" in problems
    assert "missing names running, which sample fills" in problems
    assert "missing names 'speed', which is not a field of EngineSample" in problems
    assert "exported: the pages lack a series of 'hits' (bad_hits, bad_lookups, as a ratio)" in problems
    assert not any("'steps'" in each for each in problems)


def test_constructor_arguments_are_reported() -> None:
    class Wants(Bad):
        def __init__(self, port: int) -> None: ...

    (problem,) = find_problems(Wants)  # type: ignore[arg-type]
    assert problem.startswith("the engine class must take no arguments")


def test_an_abstract_engine_is_reported() -> None:
    assert find_problems(Engine) == ["the engine has no match_score (servetop.engines.engine.Engine)"]


def test_missing_members_are_reported() -> None:
    assert "the engine has no launch (servetop.engines.engine.Engine)" in find_problems(object)  # type: ignore[arg-type]


def test_a_metric_map_reports_unmapped_fields_as_missing() -> None:
    table = MetricMap(path="/stats", fields={"running": gauge("nimble_running")})
    pages = {"/stats": b"nimble_running 3\n"}
    assert table.missing(pages) == not_exported(table.sample(pages, start=0, end=0))


def test_the_example_of_the_guide_conforms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = dict(re.findall(r"^`([\w.]+)`\n\n```python\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL))
    for name, text in blocks.items():
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    tests: dict[str, Any] = {}
    exec(compile(blocks["test_nimble.py"], "test_nimble.py", "exec"), tests)
    called = [call() for name, call in tests.items() if name.startswith("test_")]
    assert len(called) == 1
