"""The pages of the documentation, and what they name: links, headings, paths of code."""

from __future__ import annotations

import re
from pathlib import Path

from tests.house.source_tree import ROOMS, TOP

PAGES = sorted([*TOP.glob("*.md"), *(TOP / "docs").rglob("*.md")])
CODE_BLOCK = re.compile(r"^( *)```.*?^\1```", re.MULTILINE | re.DOTALL)


def name_of(page: Path) -> str:
    """A page's path from the repository root: its name in a test's report."""
    return page.relative_to(TOP).as_posix()


def prose(page: Path) -> str:
    """The text of a page without its fenced code blocks."""
    return CODE_BLOCK.sub("", page.read_text(encoding="utf-8"))


def links(page: Path) -> list[str]:
    """The targets of the relative links of a page, with their `#anchor`."""
    targets = re.findall(r"\]\(([^)\s]+)\)", prose(page))
    return [target for target in targets if not re.match(r"[a-z]+:", target)]


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub makes of the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def code_paths(page: Path) -> set[str]:
    """Python files that a page names in backquotes, such as `core/clock.py`."""
    spans = re.findall(r"`([^`\n]+)`", prose(page))
    return {word for span in spans for word in span.split() if re.fullmatch(r"[\w./-]+\.py", word)}


def blocks(page: Path, language: str = "python") -> dict[str, str]:
    """The code blocks of a page that stand below a line with a file name alone, by that name."""
    pattern = rf"^`([\w./-]+)`\n\n```{language}\n(.*?)^```$"
    return dict(re.findall(pattern, page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL))


def file_of(path: str) -> Path:
    """The file of a path in the docs, which may be short: `core/clock.py` for `core/servetop/core/clock.py`."""
    room, _, rest = path.partition("/")
    short = TOP / room / "servetop" / room / rest
    return short if room in ROOMS and short.exists() else TOP / path
