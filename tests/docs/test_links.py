"""Every link of the documentation resolves, and every Python file that it names exists."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import PAGES, anchors, blocks, code_paths, file_of, links, name_of
from tests.house.source_tree import TOP

OF_OTHER_PROJECTS = {"vllm/benchmarks/serve.py", "launch_triton_server.py"}
ABSENT_ON_PURPOSE = {"servetop/__init__.py"}
HISTORY = TOP / "CHANGELOG.md"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_relative_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    broken = []
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("page", [page for page in PAGES if page != HISTORY], ids=name_of)
def test_every_python_file_that_a_page_names_exists(page: Path) -> None:
    named = code_paths(page) - OF_OTHER_PROJECTS - ABSENT_ON_PURPOSE - set(blocks(page))
    assert sorted(path for path in named if not file_of(path).is_file()) == []


def test_every_page_is_linked_from_another() -> None:
    linked = {(page.parent / link.partition("#")[0]).resolve() for page in PAGES for link in links(page)}
    assert [name_of(page) for page in PAGES if page.parent != TOP and page not in linked] == []
