"""The page of metrics is the one that the declarations give, and has each of them once."""

from __future__ import annotations

from servetop.run.exporter.metric_registry import METRICS
from servetop.run.exporter.metrics_page import metrics_page
from tests.house.source_tree import TOP


def test_the_page_is_current() -> None:
    page = (TOP / "docs/reference/prometheus.md").read_text(encoding="utf-8")
    assert page == metrics_page(), "run `make schema`"


def test_each_metric_has_one_row() -> None:
    page = metrics_page()
    assert [metric.name for metric in METRICS if page.count(f"\n| `{metric.name}` |") != 1] == []
