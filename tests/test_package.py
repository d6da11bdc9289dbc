"""What the package says of itself: dependencies, licences, files."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import distributions, packages_distributions
from pathlib import Path
from typing import Any

import pytest
from locks.audit import verdict
from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name

from tests.bounds.requirements import requirements
from tests.house.source_tree import ROOMS, TOP

USED_BY_NAME = {"nvidia-ml-py", "amdsmi"}
"""Their modules are named otherwise, or only there beside a GPU."""
OF_OTHER_ENVIRONMENTS = {"ray", "starlette", "torch", "transformers", "triton_python_backend_utils"}
"""Imported by servers that run in an engine's own environment."""


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return found


def _sources() -> Iterator[Path]:
    for room in ROOMS:
        yield from (TOP / room).rglob("*.py")


def _imported() -> dict[str, set[str]]:
    """Top-level modules of other makers, and the files that import each."""
    found: dict[str, set[str]] = {}
    for path in _sources():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            for name in {name.partition(".")[0] for name in names} - sys.stdlib_module_names - {"servetop"}:
                found.setdefault(name, set()).add(path.name)
    return found


def _names(requirements: list[str]) -> set[str]:
    return {canonicalize_name(Requirement(each).name) for each in requirements}


def test_every_dependency_is_imported_and_every_import_is_a_dependency(project: dict[str, Any]) -> None:
    needed = _names(project["dependencies"])
    extras = project["optional-dependencies"]
    optional = set[str]().union(*(_names(extras[name]) for name in extras if name not in ("dev", "bench")))
    makers = packages_distributions()
    imported = {
        canonicalize_name(maker) for module in _imported() for maker in makers.get(module, [module])
    } - OF_OTHER_ENVIRONMENTS
    assert needed - imported - USED_BY_NAME == set()
    assert {each for each in imported - needed - optional if each not in USED_BY_NAME} == set()


def test_every_dependency_has_its_line_in_the_docs(project: dict[str, Any]) -> None:
    text = (TOP / "docs/reference/dependencies.md").read_text(encoding="utf-8")
    extras = project["optional-dependencies"]
    needed = _names(project["dependencies"]).union(*(_names(extras[name]) for name in extras if name != "dev"))
    assert [name for name in sorted(needed) if name not in text] == []


def test_the_licences_of_all_data_are_named_and_shipped(project: dict[str, Any]) -> None:
    texts = [path for room in ROOMS for path in (TOP / room).rglob("LICENSE*")]
    assert len(texts) >= 4
    shipped = {path for pattern in project["license-files"] for path in TOP.glob(pattern)}
    assert set(texts) - shipped == set()
    kinds = {path.name.removesuffix(".txt").split(".", 2)[2] for path in texts}
    assert kinds <= set(project["license"].split(" AND "))


def _locked(text: str) -> dict[NormalizedName, list[Requirement]]:
    """The pins of a lock file by name; several where they differ by platform or Python."""
    found: dict[NormalizedName, list[Requirement]] = {}
    for line in text.splitlines():
        if line and not line.startswith((" ", "#")):
            requirement = Requirement(line.removesuffix("\\").strip())
            found.setdefault(canonicalize_name(requirement.name), []).append(requirement)
    return found


def test_what_ci_installs_is_locked_at_versions_that_pyproject_allows(project: dict[str, Any]) -> None:
    locked = _locked((TOP / "locks/ci.txt").read_text(encoding="utf-8"))
    for text in [*project["dependencies"], *project["optional-dependencies"]["dev"], "hatchling>=1.27", "editables"]:
        needed = Requirement(text)
        pins = locked[canonicalize_name(needed.name)]
        versions = [next(iter(pin.specifier)).version for pin in pins]
        assert [each for each in versions if not needed.specifier.contains(each)] == [], f"{text}: make lock"


@pytest.mark.parametrize("name", ["ci.txt", "audit.txt", "lowest.txt", "peers/openai.txt"])
def test_every_locked_package_has_its_hashes_and_the_file_names_no_host(name: str) -> None:
    text = (TOP / "locks" / name).read_text(encoding="utf-8")
    assert not re.search(r"://|--(index|extra|find|trusted)", text)
    blocks = re.split(r"\n(?=[a-z0-9])", text.strip(), flags=re.IGNORECASE)
    assert len(blocks) > 10
    locked = re.compile(r"[\w.-]+(\[[\w,-]+\])?==[^\n]+\n +--hash=sha256:[0-9a-f]{64}")
    assert [block for block in blocks if not locked.match(block)] == []


def test_the_lowest_versions_are_locked_as_pyproject_claims_them() -> None:
    locked = _locked((TOP / "locks/lowest.txt").read_text(encoding="utf-8"))
    for text in requirements("lowest"):
        needed = Requirement(text)
        assert [pin.specifier for pin in locked[canonicalize_name(needed.name)]] == [needed.specifier], "make lock"


@pytest.mark.parametrize("name", ["vllm", "transformers", "ray-serve-llm", "llama.cpp"])
def test_each_package_of_a_real_engine_has_one_version(name: str) -> None:
    wanted = [
        Requirement(line)
        for line in (TOP / f"locks/engines/{name}.in").read_text(encoding="utf-8").splitlines()
        if not line.startswith("#")
    ]
    locked = _locked((TOP / f"locks/engines/{name}.txt").read_text(encoding="utf-8"))
    assert {canonicalize_name(each.name) for each in wanted if not each.marker or each.marker.evaluate()} <= set(locked)
    assert all(re.fullmatch(r"==[^*,]+", str(pin.specifier)) for pins in locked.values() for pin in pins)


def _missing(
    package: NormalizedName, requires: list[str], locked: dict[NormalizedName, list[Requirement]]
) -> list[str]:
    """The requirements that hold here of a package with its locked extras, and that the lock does not satisfy."""
    wanted_extras = {extra for pin in locked[package] for extra in pin.extras} | {""}
    missing = []
    for needed in map(Requirement, requires):
        if needed.marker and not any(needed.marker.evaluate({"extra": extra}) for extra in wanted_extras):
            continue
        pins = [
            pin for pin in locked.get(canonicalize_name(needed.name), []) if not pin.marker or pin.marker.evaluate()
        ]
        fits = [pin for pin in pins if needed.specifier.contains(next(iter(pin.specifier)).version, prereleases=True)]
        if not any(pin.extras >= needed.extras for pin in fits):
            missing.append(f"{package}: {needed}")
    return missing


def test_the_lock_has_all_requirements_of_its_packages_with_their_extras() -> None:
    locked = _locked((TOP / "locks/ci.txt").read_text(encoding="utf-8"))
    installed = {canonicalize_name(each.metadata["Name"]): each for each in distributions()}
    here = {
        name: installed[name].requires or []
        for name, pins in locked.items()
        if name in installed and installed[name].version in {next(iter(pin.specifier)).version for pin in pins}
    }
    assert [line for name, requires in here.items() for line in _missing(name, requires, locked)] == []


def test_a_requirement_that_the_lock_lacks_is_found() -> None:
    locked = _locked("cover==7.1\nnewer[fast]==2.0\nreports==1.0")
    reports, newer = canonicalize_name("reports"), canonicalize_name("newer")
    assert _missing(reports, ["cover[toml]>=7"], locked) == ["reports: cover[toml]>=7"]
    assert _missing(reports, ["cover>=8"], locked) == ["reports: cover>=8"]
    assert _missing(reports, ["newer[fast]", "cover; sys_platform == 'win32'", "old; extra == 'old'"], locked) == []
    assert _missing(newer, ["speed; extra == 'fast'"], locked) == ['newer: speed; extra == "fast"']


def test_a_package_that_no_service_knows_is_not_called_sound() -> None:
    skipped = {"name": "a", "skip_reason": "not found"}
    sound = {"name": "b", "version": "1", "vulns": []}
    bad = {"name": "c", "version": "1", "vulns": [{"id": "X-1", "fix_versions": ["2"]}]}
    assert verdict("lock", []) == (False, ["lock: could not be audited: no source of advisories answers here"])
    assert verdict("lock", [skipped]) == verdict("lock", [])
    assert verdict("lock", [skipped, sound]) == (
        False,
        ["lock: no advisories for 1 packages, 1 could not be looked up"],
    )
    found, lines = verdict("lock", [skipped, sound, bad])
    assert found
    assert lines[0] == "c 1: X-1 (mended in 2)"


def test_no_portion_of_the_namespace_hides_the_others() -> None:
    assert not list(TOP.glob("*/servetop/__init__.py"))
