"""Engines are found by name, and listing them imports none."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from servetop.core.errors import EngineError, UsageError
from servetop.engines.capabilities import capabilities
from servetop.engines.engine_registry import BUILT_IN, GROUP, engine_names, load_engine, loadable_engines

LISTING = """
import sys
from servetop.engines.engine_registry import engine_names
assert engine_names()
adapters = "servetop.engines.adapters."
print([name for name in (adapters + "vllm", adapters + "openai_compatible", "servetop.simulator.adapter", "numpy")
       if name in sys.modules])
"""


def test_the_built_in_engines_are_the_entry_points_of_the_package() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["entry-points"][GROUP] == BUILT_IN


def test_every_built_in_engine_can_be_loaded() -> None:
    assert set(engine_names()) >= {"openai", "sim", "vllm"}
    assert [load_engine(name).name for name in BUILT_IN] == list(BUILT_IN)


def test_listing_imports_no_engine() -> None:
    listed = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {sys.path!r}\n{LISTING}"], capture_output=True, check=True
    )
    assert listed.stdout.strip() == b"[]"


@pytest.mark.parametrize(("name", "hint"), [("vLLM", "did you mean vllm"), ("orca", "choose .*openai, .*sim, .*vllm")])
def test_an_unknown_engine_is_reported_with_the_existing_ones(name: str, hint: str) -> None:
    with pytest.raises(UsageError, match=f"unknown engine '{name}': {hint}"):
        load_engine(name)


def test_a_broken_plug_in_is_reported_and_hides_no_other_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BUILT_IN, "broken", "tests.engines.test_engine_registry:Broken")
    with pytest.raises(EngineError, match=r"engine 'broken' .* cannot be loaded: TypeError: no GPU, no class"):
        load_engine("broken")
    assert {engine.name for engine in loadable_engines()} == set(engine_names()) - {"broken"}
    assert [each.trouble != "" for each in capabilities(["broken", "sim"])] == [True, False]


class Broken:
    def __init__(self) -> None:
        raise TypeError("no GPU, no class")
