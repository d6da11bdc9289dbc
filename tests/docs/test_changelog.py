"""The changelog lists the changes of each version under headings of which each occurs once."""

from __future__ import annotations

import re

from tests.house.source_tree import TOP

KINDS = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]
"""Of Keep a Changelog, in its order."""


def test_each_heading_of_a_version_occurs_once_and_in_order() -> None:
    _, *versions = re.split(r"^## ", (TOP / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert versions
    for version in versions:
        found = re.findall(r"^### (\w+)$", version, flags=re.MULTILINE)
        assert found == [kind for kind in KINDS if kind in found], version.partition("\n")[0]
