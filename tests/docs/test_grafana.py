"""The Grafana dashboard: what Grafana imports, with queries for metrics and labels that servetop serves."""

from __future__ import annotations

import json
import re
from itertools import combinations
from typing import Any

import pytest

from servetop.run.exporter.live_metric import LiveMetricKind
from servetop.run.exporter.metric_registry import METRICS
from tests.house.source_tree import TOP

BOARD: dict[str, Any] = json.loads((TOP / "docs/grafana/servetop.json").read_text(encoding="utf-8"))
PANELS: list[dict[str, Any]] = [panel for panel in BOARD["panels"] if panel["type"] != "row"]
QUERIES = [(panel["title"], target["expr"]) for panel in PANELS for target in panel["targets"]]
SERIES = {
    f"{metric.name}{suffix}": {*metric.labels, *(("le",) if suffix == "_bucket" else ())}
    for metric in METRICS
    for suffix in (("_bucket", "_sum", "_count") if metric.kind is LiveMetricKind.HISTOGRAM else ("",))
}
"""The labels of every series that a run or a watch serves, by name."""
OF_THE_SCRAPE = {"instance", "job"}
KINDS = {"timeseries", "state-timeline", "stat", "heatmap"}
SOURCE = {"type": "prometheus", "uid": "${datasource}"}


def series_in(query: str) -> list[tuple[str, set[str]]]:
    """The series of a query with the labels of their selectors."""
    found = re.findall(r"\b((?:servetop|gen_ai|vllm)[a-z0-9_:]*)(?:\{([^}]*)\})?", re.sub(r"by \([^)]*\)", "", query))
    return [(name, set(re.findall(r"([a-z_]+)(?:=~|!~|!=|=)\"", selector))) for name, selector in found]


@pytest.mark.parametrize(("title", "query"), QUERIES)
def test_a_query_names_only_series_and_labels_that_are_served(title: str, query: str) -> None:
    found = series_in(query)
    assert found
    for name, labels in found:
        assert name in SERIES, f"{title}: {name}"
        assert "instance" in labels
        assert labels <= SERIES[name] | OF_THE_SCRAPE, f"{title}: {name}"
    names = {name for name, _ in found}
    for grouped in re.findall(r"by \(([^)]*)\)", query):
        labels = {label.strip() for label in grouped.split(",")}
        assert all(labels <= SERIES[name] for name in names), title
    assert query.count("(") == query.count(")")


@pytest.mark.parametrize(("title", "query"), QUERIES)
def test_a_counter_is_shown_as_a_rate(title: str, query: str) -> None:
    for name, _ in series_in(query):
        if name.endswith(("_total", "_bucket")):
            assert re.search(rf"rate\({name}\{{[^}}]*\}}\[\$__rate_interval\]\)", query), title


def test_legends_name_labels_of_their_series() -> None:
    for panel in PANELS:
        for target in panel["targets"]:
            known = set().union(*(SERIES[name] for name, _ in series_in(target["expr"])))
            assert set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) <= known, panel["title"]


def test_every_metric_that_changes_is_on_the_dashboard() -> None:
    shown = {name for _, query in QUERIES for name, _ in series_in(query)}
    left_out = {metric.name for metric in METRICS if not {f"{metric.name}{end}" for end in ("", "_bucket")} & shown}
    assert left_out == {
        "servetop_build_info", "servetop_run_start_time_seconds", "servetop_run_phase", "servetop_stage_info",
        "servetop_load_paused", "servetop_objective_seconds", "servetop_chunks_total", "servetop_request_tokens_total",
        "gen_ai_client_token_usage",
    }  # fmt: skip


def test_it_has_the_form_that_grafana_imports() -> None:
    assert {"title", "uid", "tags", "schemaVersion", "panels", "templating", "time"} <= BOARD.keys()
    assert len(BOARD["uid"]) <= 40
    assert "vllm" in BOARD["tags"], "the links of vLLM's own dashboards find it by this tag"
    assert BOARD["schemaVersion"] >= 36
    assert [each["name"] for each in BOARD["templating"]["list"]] == ["datasource", "instance"]
    ids = [panel["id"] for panel in BOARD["panels"]]
    assert len(ids) == len(set(ids))
    for panel in PANELS:
        assert panel["type"] in KINDS
        assert panel["datasource"] == SOURCE
        assert panel["description"].endswith(".")
        assert [target["refId"] for target in panel["targets"]] == list("ABCDEFG"[: len(panel["targets"])])
        assert all(target["datasource"] == SOURCE for target in panel["targets"])


def test_no_two_panels_overlap_and_all_fit_the_width() -> None:
    def cells(panel: dict[str, Any]) -> set[tuple[int, int]]:
        at = panel["gridPos"]
        return {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}

    for one, other in combinations(BOARD["panels"], 2):
        assert not cells(one) & cells(other), (one["title"], other["title"])
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in BOARD["panels"])
