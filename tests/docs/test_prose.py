"""The pages use the field's words: some phrases of the old wording are refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, name_of, prose
from tests.house.source_tree import TOP

REFUSED = re.compile(
    r"\b(told|tells|so many|goes on|puts? aside|held back|by hand|anew|obeys?|of its own accord|front door|wires?|dear"
    r"|(?<!there )(?:is|are) no (?!longer)|nobody|somebody|what stands)\b",
    re.IGNORECASE,
)
LEFT_OUT = {TOP / "CHANGELOG.md", TOP / "docs" / "reliability.md", TOP / "docs" / "performance.md"}
"""History, and pages with generated parts."""


def refused(page: Path) -> list[str]:
    """The lines of a page with a refused phrase, outside of code."""
    lines = re.sub(r"`[^`\n]*`", "", prose(page)).splitlines()
    return [line for line in lines if REFUSED.search(line)]


@pytest.mark.parametrize("page", [page for page in PAGES if page not in LEFT_OUT], ids=name_of)
def test_pages_use_plain_technical_english(page: Path) -> None:
    assert refused(page) == []
