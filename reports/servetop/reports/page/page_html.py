"""Writes a page as one HTML file: no part of it is loaded from elsewhere, and its policy forbids that."""

from __future__ import annotations

import base64
import hashlib

from servetop.core.system.package_data import package_path
from servetop.reports.page.answer_section import answer_section
from servetop.reports.page.chart_specs import load_points, time_charts
from servetop.reports.page.figure_tables import (
    definitions,
    episodes_table,
    latency_table,
    manifest_part,
    repeat_part,
    stages_table,
    totals_table,
)
from servetop.reports.page.html_text import Markup, element, joined, json_text
from servetop.reports.page.report_page import ReportPage
from servetop.reports.page.sweep_matrix import sweep_part

_STYLES = ("uPlot.min.css", "page.css")
_SCRIPTS = ("uPlot.iife.min.js", "columns.js", "charts.js", "heat_map.js", "limits.js", "page.js")


def page_html(page: ReportPage) -> str:
    """Return the whole file."""
    style, script = (_asset_text(names) for names in (_STYLES, _SCRIPTS))
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; base-uri 'none'; form-action 'none'"
    )
    head = element(
        "head",
        Markup('<meta charset="utf-8">'),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Markup('<meta name="color-scheme" content="light dark">'),
        element("title", f"{page.summary.set_up.label or page.name} · servetop report"),
        element("style", Markup(style)),
    )
    data = element("script", json_text(_data(page)), type="application/json", id="data")
    body = element("body", element("main", *_sections(page)), data, element("script", Markup(script)))
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"


def _sections(page: ReportPage) -> list[Markup | None]:
    return [
        answer_section(page),
        sweep_part(page.summary.sweep),
        element(
            "section",
            element("h2", "Figures"),
            element("div", latency_table(page.summary), totals_table(page.summary), class_="tables"),
            stages_table(page.summary),
        ),
        _limits(page),
        element(
            "section",
            element("h2", "Charts"),
            element("p", _chart_help(page), class_="note"),
            element("div", id="charts", class_="charts"),
            episodes_table(page),
        ),
        _details("Definitions", definitions()),
        _details("Manifest: what was measured", manifest_part(page)),
        element("section", element("h2", "Repeat it"), repeat_part(page)),
        element("footer", f"Written by servetop {page.record.header.versions.get('servetop', '')}".rstrip()),
    ]


def _limits(page: ReportPage) -> Markup:
    """Return the place of the sliders, which a script fills."""
    share = page.rows.bin_share
    note = f"The {page.rows.ended:,} requests that ended are counted again at each step."
    if share is not None:
        note = (
            f"The {page.rows.ended:,} requests are counted in bins of {share:.0%} of their latency: exact at the "
            "recorded limits, else up to one bin too low."
        )
    return element(
        "section",
        element("h2", "What if the limits were others?"),
        element("p", note, class_="note"),
        element("div", element("noscript", "This part needs scripts."), id="limits"),
    )


def _chart_help(page: ReportPage) -> str:
    seconds = page.time.seconds
    bins = "one second" if seconds == 1 else f"{seconds:g} seconds"
    return (
        f"A point is {bins}; a band spans the lowest and highest value in it. Drag to zoom all charts, double-click or "
        "Escape to zoom out; arrow keys move the cursor of a focused chart. Click a name to hide its line. Shaded: "
        "episodes, listed below."
    )


def _details(title: str, content: Markup) -> Markup:
    return element("details", element("summary", element("h2", title)), content)


def _data(page: ReportPage) -> dict[str, object]:
    summary, config = page.summary, page.record.header.config
    return {
        "objectives": dict(config.goodput),
        "duration": summary.requests.duration,
        "rows": page.rows.as_data(),
        "stages": [
            {"stage": each.stage, "label": each.label, "duration": each.measured.requests.duration}
            for each in summary.stages
        ],
        "time": page.time.as_data(),
        "charts": [each.as_data() for each in time_charts(page)],
        "episodes": [
            {"kind": each.kind.value, "begin": each.begin, "end": page.record.until if each.end is None else each.end}
            for each in page.record.episodes
        ],
        "starts": [{"at": each.at, "label": each.label} for each in page.record.loads],
        "curves": page.curves,
        "heat": page.heat,
        "load": load_points(summary),
    }


def _asset_text(names: tuple[str, ...]) -> str:
    folder = package_path("servetop.reports.page", "data")
    return joined(*(Markup((folder / name).read_text(encoding="utf-8").strip() + "\n") for name in names))


def _hash(text: str) -> str:
    """Return the source expression of an inline script or style in a policy."""
    digest = base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
    return f"'sha256-{digest}'"
