"""Rows of a metrics page as servetop and as prometheus_client read them: name, labels and value of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families

from servetop.engines.metrics.prometheus_text import scan

Rows = list[tuple[str, dict[str, str], str]]


class _AnyName:
    def __contains__(self, name: object) -> bool:
        return bool(name) and not str(name).startswith("#")


def own_rows(page: bytes) -> Rows:
    """Return servetop's rows of a page, sorted."""
    text = page.decode("utf-8", errors="replace")
    rows = [(name, dict(row.labels), repr(row.value)) for name, rows in scan(text, _AnyName()).items() for row in rows]
    return sorted(rows, key=repr)


def reference_rows(page: bytes) -> Rows:
    """Return prometheus_client's rows of a page; none if it refuses the page, as it does for one malformed row."""
    text = page.decode("utf-8", errors="replace")
    parse: Callable[[str], Iterable[Metric]] = text_string_to_metric_families
    if text.endswith("# EOF\n"):
        parse = openmetrics_families
    try:
        rows = [
            (row.name, dict(row.labels), repr(float(row.value))) for family in parse(text) for row in family.samples
        ]
    except (ValueError, IndexError, KeyError, TypeError, AttributeError):
        return []
    return sorted(rows, key=repr)
