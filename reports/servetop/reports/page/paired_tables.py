"""The tables of two runs side by side: latencies, totals, manifests."""

from __future__ import annotations

from collections.abc import Mapping

from servetop.analysis.summary.summary_types import RunSummary
from servetop.core.text import formats
from servetop.reports.page.figure_tables import LATENCIES, LATENCY_CAPTION, STATISTICS, latency_texts, total_rows
from servetop.reports.page.html_text import Markup, data_table, element

Summaries = Mapping[str, RunSummary]
"""Summaries by the letter of their run."""


def paired_latencies(summaries: Summaries) -> Markup:
    """Return the statistics of each latency in milliseconds, a row for each run."""
    texts = {letter: latency_texts(summary) for letter, summary in summaries.items()}
    rows = [
        (f"{label} {letter}", *found[metric])
        for metric, label in LATENCIES.items()
        for letter, found in texts.items()
        if metric in found
    ]
    return data_table(("ms", *STATISTICS), rows, caption=LATENCY_CAPTION)


def paired_totals(summaries: Summaries) -> Markup:
    """Return the totals, a column for each run."""
    return _side_by_side({letter: dict(total_rows(each)) for letter, each in summaries.items()}, caption="Totals")


def paired_manifest(manifests: Mapping[str, Mapping[str, Mapping[str, str]]]) -> Markup:
    """Return a table for each section of the manifests, a column for each run."""
    sections = list(dict.fromkeys(name for each in manifests.values() for name in each))
    tables = [
        _side_by_side({letter: each.get(name, {}) for letter, each in manifests.items()}, caption=name.capitalize())
        for name in sections
    ]
    return element("div", *tables, class_="pairs")


def _side_by_side(columns: Mapping[str, Mapping[str, str]], *, caption: str) -> Markup:
    names = list(dict.fromkeys(name for each in columns.values() for name in each))
    rows = [(name, *(each.get(name, formats.UNKNOWN) for each in columns.values())) for name in names]
    return data_table(("", *columns), rows, caption=caption)
