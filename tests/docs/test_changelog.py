"""The changelog begins with what is unreleased and the version of the package; headings of a version occur once."""

from __future__ import annotations

import re
import tomllib
from datetime import date

from tests.house.source_tree import TOP

KINDS = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]
"""Of Keep a Changelog, in its order."""
CHANGELOG = (TOP / "CHANGELOG.md").read_text(encoding="utf-8")
VERSION = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]


def test_each_heading_of_a_version_occurs_once_and_in_order() -> None:
    _, *versions = re.split(r"^## ", CHANGELOG, flags=re.MULTILINE)
    assert versions
    for version in versions:
        found = re.findall(r"^### (\w+)$", version, flags=re.MULTILINE)
        assert found == [kind for kind in KINDS if kind in found], version.partition("\n")[0]


def test_what_is_unreleased_is_followed_by_the_version_of_the_package_with_its_date() -> None:
    first, second = re.findall(r"^## (.+)$", CHANGELOG, flags=re.MULTILINE)[:2]
    assert first == "[Unreleased]"
    version, _, day = second.partition(" - ")
    assert version == f"[{VERSION}]"
    assert date.fromisoformat(day).isoformat() == day
