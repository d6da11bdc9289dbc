"""The navigation of the site (mkdocs.yml) lists each page of the docs once."""

from __future__ import annotations

import re
from collections import Counter

from tests.house.source_tree import TOP

DOCS = TOP / "docs"


def test_each_page_is_in_the_navigation_once() -> None:
    navigation = (TOP / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    listed = Counter(re.findall(r"^ *- (\S+\.md)$", navigation, flags=re.MULTILINE))
    assert listed == Counter(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))
