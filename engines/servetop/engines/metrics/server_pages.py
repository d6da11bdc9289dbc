"""The metrics pages of one server, of which a page with the same rows as before is split and compared once.

Several readers want rows of a page: the one of the engine's sample, and that of the series of the engine page. What is
known of the pages of a server is kept from scrape to scrape, by a `PageMemory`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from servetop.engines.metrics.prometheus_text import PrometheusSample
from servetop.engines.metrics.repeated_page import RepeatedPage

Rows = tuple[tuple[str, PrometheusSample], ...]
"""Name and sample of each row, in page order."""


class PageRows(NamedTuple):
    """The rows of some series of a page."""

    rows: Rows
    """With samples that may be of an earlier page."""
    values: Sequence[float]
    """The value of each row."""
    derived: dict[int, Any]
    """What readers, by their `id`, found out about the rows: kept for as long as pages have the same rows."""


@dataclass(frozen=True, slots=True, eq=False)
class _Wanted:
    """The rows that one reader wants, and where they are among those of all."""

    rows: Rows
    places: tuple[int, ...]
    derived: dict[int, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, page: RepeatedPage, names: frozenset[str]) -> _Wanted:
        places = tuple(place for place, (name, _) in enumerate(page.rows) if name in names)
        return cls(tuple(page.rows[place] for place in places), places)


class PageMemory:
    """The rows of the pages of one server that its readers want, kept from scrape to scrape."""

    def __init__(self) -> None:
        self._names: dict[str, frozenset[str]] = {}
        """The series that any reader wants of each path."""
        self._pages: dict[str, RepeatedPage] = {}
        """The last page of each path that had other rows than the one before."""
        self._wanted: dict[tuple[str, frozenset[str]], _Wanted] = {}

    def values(self, path: str, text: str) -> list[float]:
        """Return the values of all rows of a page that any reader wants."""
        known = self._pages.get(path)
        values = None if known is None else known.values(text)
        return self._read(path, text) if values is None else values

    def knows(self, path: str, names: frozenset[str]) -> bool:
        """Whether a reader wants only series that were wanted before; else the page has to be read for all."""
        before = self._names.get(path, frozenset())
        if names <= before:
            return True
        self._names[path] = before | names
        self._pages.pop(path, None)
        return False

    def wanted(self, path: str, names: frozenset[str]) -> _Wanted:
        """Return the rows of these series on the last page."""
        found = self._wanted.get((path, names))
        if found is None:
            found = self._wanted[path, names] = _Wanted.of(self._pages[path], names)
        return found

    def _read(self, path: str, text: str) -> list[float]:
        self._pages[path] = page = RepeatedPage.of(text, self._names[path])
        self._wanted = {key: each for key, each in self._wanted.items() if key[0] != path}
        return [row.value for _, row in page.rows]


class ServerPages(Mapping[str, bytes]):
    """The bodies of the pages of one scrape by path, from which `page_rows` reads each page once."""

    def __init__(self, bodies: Mapping[str, bytes], memory: PageMemory) -> None:
        self._bodies, self._memory = bodies, memory
        self._values: dict[str, list[float]] = {}

    def __getitem__(self, path: str) -> bytes:
        return self._bodies[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._bodies)

    def __len__(self) -> int:
        return len(self._bodies)

    def rows(self, path: str, names: frozenset[str]) -> PageRows:
        """Return the rows of these series of a page."""
        if not self._memory.knows(path, names) or path not in self._values:
            self._values[path] = self._memory.values(path, page_text(self, path))
        wanted, values = self._memory.wanted(path, names), self._values[path]
        return PageRows(wanted.rows, [values[place] for place in wanted.places], wanted.derived)


def page_rows(pages: Mapping[str, bytes], path: str, names: frozenset[str]) -> PageRows:
    """Return the rows of these series of a page; those of `ServerPages` are the same objects as before."""
    if isinstance(pages, ServerPages):
        return pages.rows(path, names)
    rows = RepeatedPage.of(page_text(pages, path), names).rows
    return PageRows(rows, [row.value for _, row in rows], {})


def page_text(pages: Mapping[str, bytes], path: str) -> str:
    """Return a page as text; empty if it was not fetched."""
    return pages.get(path, b"").decode("utf-8", errors="replace")
