"""Prints what `make test-lowest` and `make test-newest` install: every requirement of pyproject.toml, one a line.

`lowest`: exactly the lower bound that pyproject.toml claims. `newest`: as claimed, so that pip takes the newest.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"
OPTIONAL = ("datasets", "png", "web", "proxy", "tokenizers")
"""Extras whose packages the unit tests use."""
NOT_RUN = ("import-linter", "mypy", "pre-commit", "ruff", "vulture")
"""Tools that look at the sources; no test imports them."""
_FORM = re.compile(r"^(?P<name>[\w.-]+)(?P<extras>\[[^]]*\])?(?P<bounds>[^;]*)(?P<marker>;.*)?$")


def requirements(which: str) -> list[str]:
    """The requirements of one kind, sorted; ValueError for one without a lower bound."""
    return sorted({_at(which, text) for text in _claimed()})


def _claimed() -> Iterator[str]:
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))
    yield from project["build-system"]["requires"]  # the editable install of a test run needs it
    yield from project["project"]["dependencies"]
    extras = project["project"]["optional-dependencies"]
    for each in OPTIONAL:
        yield from extras.get(each, ())
    yield from (text for text in extras["dev"] if not text.startswith(NOT_RUN))


def _at(which: str, text: str) -> str:
    parts = _FORM.match(text)
    floor = parts and re.search(r">=\s*([^,\s]+)", parts["bounds"])
    if parts is None or floor is None:
        raise ValueError(f"pyproject.toml: {text!r} has no lower bound")
    bounds = f"=={floor[1]}" if which == "lowest" else parts["bounds"].strip()
    return f"{parts['name']}{parts['extras'] or ''}{bounds}{parts['marker'] or ''}"


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in requirements(sys.argv[1]))
