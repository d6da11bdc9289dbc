"""The page of one recording, part by part."""

from __future__ import annotations

from collections.abc import Sequence

from servetop.reports.page.answer_section import answer_section
from servetop.reports.page.chart_specs import time_charts
from servetop.reports.page.figure_tables import (
    costs_table,
    definitions,
    episodes_table,
    latency_table,
    manifest_part,
    repeat_part,
    stages_table,
    totals_table,
)
from servetop.reports.page.html_file import charts_section, details, footer, html_file, limits_section
from servetop.reports.page.html_text import Markup, element
from servetop.reports.page.latency_charts import distribution_charts, load_charts
from servetop.reports.page.report_page import ReportPage
from servetop.reports.page.search_section import search_data, search_section
from servetop.reports.page.sweep_matrix import recounted_table, sweep_part
from servetop.reports.page.ttft_table import ttft_section


def page_html(page: ReportPage, *, further: Sequence[Markup] = ()) -> str:
    """Return the whole file, with further sections behind the charts."""
    return html_file(page.summary.set_up.label or page.name, _sections(page, further), _data(page))


def _sections(page: ReportPage, further: Sequence[Markup]) -> list[Markup | None]:
    return [
        answer_section(page),
        search_section(page.search),
        sweep_part(page.summary.sweep),
        element(
            "section",
            element("h2", "Figures"),
            element("div", latency_table(page.summary), totals_table(page.summary), class_="tables totals"),
            stages_table(page.summary),
            costs_table(page.summary),
        ),
        ttft_section(page),
        limits_section(_limits_note(page), recounted_table(page.summary)),
        charts_section(_chart_help(page), episodes_table(page)),
        *further,
        details("Definitions", definitions()),
        details("Manifest: what was measured", manifest_part(page)),
        element("section", element("h2", "Repeat it"), repeat_part(page)),
        footer(page.record.header.versions.get("servetop", "")),
    ]


def _limits_note(page: ReportPage) -> str:
    share = page.rows.bin_share
    if share is None:
        return f"The {page.rows.ended:,} requests that ended are counted again at each step."
    return (
        f"The {page.rows.ended:,} requests are counted in bins of {share:.0%} of their latency: exact at the "
        "recorded limits, else up to one bin too low."
    )


def _chart_help(page: ReportPage) -> str:
    seconds = page.time.seconds
    bins = "one second" if seconds == 1 else f"{seconds:g} seconds"
    return (
        f"A point is {bins}; a band spans the lowest and highest value in it. Drag to zoom all charts, double-click or "
        "Escape to zoom out; arrow keys move the cursor of a focused chart. Click a name to hide its line. Shaded: "
        "episodes, listed below."
    )


def _data(page: ReportPage) -> dict[str, object]:
    return {
        "objectives": dict(page.record.header.config.goodput),
        "runs": [page.run_data("")],
        "time": page.time.as_data(),
        "charts": [each.as_data() for each in time_charts(page.time)],
        "episodes": [
            {"kind": each.kind.value, "begin": each.begin, "end": page.record.until if each.end is None else each.end}
            for each in page.record.episodes
        ],
        "starts": [{"at": each.at, "label": each.label} for each in page.record.loads],
        "distributions": distribution_charts(page),
        "heat": page.heat,
        "load": load_charts({"": page.summary}),
        "search": search_data(page.search),
    }
