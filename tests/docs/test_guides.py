"""The guides for new panels, metrics and workloads work as they stand: their code and tests are executed."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import pytest

from tests.docs.pages import blocks
from tests.house.source_tree import TOP

GUIDES = [TOP / "docs" / "how-to" / f"add-a-{kind}.md" for kind in ("metric", "panel", "workload")]


def patched(text: str, diff: str) -> str:
    """A file's text with the hunks of a diff applied; the lines of each hunk must occur in it exactly once."""
    for hunk in diff.split("@@\n"):
        lines = hunk.splitlines(keepends=True)
        before = "".join(line[1:] for line in lines if line[0] != "+")
        after = "".join(line[1:] for line in lines if line[0] != "-")
        assert text.count(before) == 1, f"not exactly once in the file:\n{before}"
        text = text.replace(before, after)
    return text


def module_name(path: str) -> str:
    """The name under which a file of the repository is imported: `servetop.core.clock`."""
    _, _, inner = path.removesuffix(".py").partition("/")
    return inner.replace("/", ".")


def new_modules(guide: Path) -> Mapping[str, str]:
    """Sources by module name, in the order of import: those that the guide adds, then those that it changes."""
    added = {path: text for path, text in blocks(guide).items() if not path.startswith("tests/")}
    changed = {
        path: patched((TOP / path).read_text(encoding="utf-8"), diff) for path, diff in blocks(guide, "diff").items()
    }
    return {module_name(path): text for path, text in {**added, **changed}.items() if path.endswith(".py")}


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.stem)
def test_a_guides_example_works(guide: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in new_modules(guide).items():
        module = ModuleType(name)
        monkeypatch.setitem(sys.modules, name, module)
        exec(compile(text, name, "exec"), vars(module))
    (test,) = [text for path, text in blocks(guide).items() if path.startswith("tests/")]
    names: dict[str, object] = {"__name__": "guide"}
    exec(compile(test, guide.name, "exec"), names)
    tests = [each for name, each in names.items() if name.startswith("test_") and callable(each)]
    assert len(tests) >= 2
    for each in tests:
        each()


def test_the_python_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    example = blocks(TOP / "docs" / "how-to" / "use-from-python.md")["example.py"]
    names: dict[str, object] = {}
    exec(compile(example, "example.py", "exec"), names)
    assert (tmp_path / "run.servetop").exists()
    assert isinstance(names["slowest"], float)
