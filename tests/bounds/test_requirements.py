"""Which versions the jobs for the lowest and the newest packages install."""

from __future__ import annotations

import tomllib

import pytest

from tests.bounds.requirements import PYPROJECT, requirements


def test_every_dependency_of_the_product_is_installed_at_its_lower_bound() -> None:
    claimed = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]["dependencies"]
    lowest = requirements("lowest")
    for text in claimed:
        name, _, rest = text.partition(">=")
        floor = rest.split(",")[0].split(";")[0].strip()
        assert any(each.startswith(f"{name}=={floor}") for each in lowest), text


def test_the_newest_keep_the_upper_bounds() -> None:
    assert any(each.startswith("textual>=") and each.endswith(",<9") for each in requirements("newest"))


@pytest.mark.parametrize("which", ["lowest", "newest"])
def test_tools_that_only_read_the_sources_are_left_out(which: str) -> None:
    assert not [each for each in requirements(which) if each.startswith(("ruff", "mypy"))]
