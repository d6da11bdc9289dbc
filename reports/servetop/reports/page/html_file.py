"""One HTML file that works offline: no part of it is loaded from elsewhere, and its policy forbids that."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence

from servetop.core.system.package_data import package_path
from servetop.reports.page.html_text import Markup, element, joined, json_text

_STYLES = ("uPlot.min.css", "page.css")
_SCRIPTS = ("uPlot.iife.min.js", "columns.js", "charts.js", "heat_map.js", "search.js", "limits.js", "page.js")


def html_file(title: str, sections: Sequence[Markup | None], data: object) -> str:
    """Return the whole file; `data` is what its script reads."""
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
        element("title", f"{title} · servetop report"),
        element("style", Markup(style)),
    )
    values = element("script", json_text(data), type="application/json", id="data")
    body = element("body", element("main", *sections), values, element("script", Markup(script)))
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"


def details(title: str, content: Markup) -> Markup:
    """Return a part that the reader opens."""
    return element("details", element("summary", element("h2", title)), content)


def limits_section(note: str, below: Markup | None = None) -> Markup:
    """Return the place of the sliders, which the script fills, below a note."""
    return element(
        "section",
        element("h2", "What if the limits were others?"),
        element("p", note, class_="note"),
        element("div", element("noscript", "This part needs scripts."), id="limits"),
        below,
    )


def charts_section(note: str, *below: Markup | None) -> Markup:
    """Return the place of the charts, which the script fills, between a note and other parts."""
    return element(
        "section",
        element("h2", "Charts"),
        element("p", note, class_="note"),
        element("div", id="charts", class_="charts"),
        *below,
    )


def footer(version: str) -> Markup:
    """Return the end of a page, with the version of servetop that recorded it."""
    return element("footer", f"Written by servetop {version}".rstrip())


def _asset_text(names: Sequence[str]) -> str:
    folder = package_path("servetop.reports.page", "data")
    return joined(*(Markup((folder / name).read_text(encoding="utf-8").strip() + "\n") for name in names))


def _hash(text: str) -> str:
    """Return the source expression of an inline script or style in a policy."""
    digest = base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
    return f"'sha256-{digest}'"
