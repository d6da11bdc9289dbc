"""Several readers of one server's pages have the rows that a scan of each page finds, whatever was read before."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from servetop.engines.metrics.prometheus_text import scan
from servetop.engines.metrics.server_pages import PageMemory, ServerPages, page_rows

PATHS = ("/metrics", "/more")
NAMES = [frozenset(names) for names in ({"a"}, {"b_total", "a"}, {"c"}, {"b_total"})]
LINES = st.sampled_from(
    ["a 1", "a 2", 'a{x="1"} 3', 'b_total{x="}"} 4', "b_total 5", "c 6", "c 7 1700000000", "other 8", "# TYPE a gauge"]
)
PAGES = st.fixed_dictionaries({path: st.lists(LINES, max_size=5).map("\n".join) for path in PATHS})

Row = tuple[str, str, float]


def found(pages: ServerPages | dict[str, bytes], path: str, names: frozenset[str]) -> list[Row]:
    """Name, labels and value of each row."""
    rows, values, _ = page_rows(pages, path, names)
    return sorted((name, row.labels_text, value) for (name, row), value in zip(rows, values, strict=True))


def scanned(page: str, names: frozenset[str]) -> list[Row]:
    return sorted((name, row.labels_text, row.value) for name, rows in scan(page, names).items() for row in rows)


@given(st.lists(st.tuples(PAGES, st.lists(st.tuples(st.sampled_from(PATHS), st.sampled_from(NAMES)))), max_size=5))
def test_readers_have_the_rows_of_each_page(
    scrapes: list[tuple[dict[str, str], list[tuple[str, frozenset[str]]]]],
) -> None:
    memory = PageMemory()
    for texts, readers in scrapes:
        bodies = {path: text.encode() for path, text in texts.items()}
        pages = ServerPages(bodies, memory)
        assert dict(pages) == bodies
        for path, names in readers:
            assert found(pages, path, names) == found(bodies, path, names) == scanned(texts[path], names)


def test_the_rows_of_pages_that_differ_in_values_are_the_same_objects() -> None:
    memory, known = PageMemory(), []
    for value in (1.0, 2.0, math.inf):
        pages = ServerPages({"/metrics": f"a {value}\nc 3\n".encode()}, memory)
        rows, values, _ = page_rows(pages, "/metrics", NAMES[0])
        known.append(rows)
        assert (values, page_rows(pages, "/metrics", NAMES[2]).values) == ([value], [3.0])
    assert known[1] is known[2], "of the first page the second reader was not known"
    assert page_rows(ServerPages({}, memory), "/metrics", NAMES[0])[0] == ()
