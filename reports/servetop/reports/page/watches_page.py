"""The page of watches side by side: what was watched, the figures of each server by its name, and both over time."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from servetop.analysis.comparison.watch_comparison import ComparedServer, WatchComparison
from servetop.analysis.diagnosis.run_record import RunRecord
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.comparison.compare_watches import compare_watches
from servetop.reports.comparison.watch_comparison_text import (
    WATCH_COLUMNS,
    change_title,
    remarks,
    server_rows,
    server_title,
    watch_row,
)
from servetop.reports.page.chart_specs import ChartSpec
from servetop.reports.page.html_file import charts_section, footer, html_file
from servetop.reports.page.html_text import Markup, data_table, element
from servetop.reports.page.paired_charts import charts_side_by_side, columns_side_by_side
from servetop.reports.page.time_columns import TimeColumns
from servetop.reports.page.watched_columns import recorded_watch_charts

_CHARTS = (
    ("output_tokens", "tokens", "Throughput: output tokens per second", "rate"),
    ("prompt_tokens", "prompt", "Throughput: prompt tokens per second", "rate"),
    ("running", "running", "Requests running", "count"),
    ("waiting", "waiting", "Requests waiting", "count"),
    ("kv_usage", "kv", "KV cache used", "share"),
    ("preemptions", "preemptions", "Preemptions per second", "rate"),
    ("ttft_p90", "ttft", "TTFT p90 by the engine's histogram", "seconds"),
    ("queue_time_p90", "queue_time", "Time in the queue, p90 by the engine's histogram", "seconds"),
    ("itl_p90", "itl", "ITL p90 by the engine's histogram", "seconds"),
    ("e2el_p90", "e2el", "E2EL p90 by the engine's histogram", "seconds"),
    ("gpu_power", "gpu", "GPU power", "watts"),
)
"""Column, name, title and unit of each chart."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WatchesPage:
    """Several recorded watches as one page."""

    names: Sequence[str]
    comparison: WatchComparison
    version: str
    """Of servetop, by which the first was recorded; empty if that is not known."""
    time: TimeColumns
    charts: Sequence[ChartSpec]


def watches_page(paths: Sequence[Path]) -> WatchesPage:
    """Read what the page of at least two watches shows; RecordingError if one cannot be read."""
    versions: list[str] = []
    times: list[TimeColumns] = []

    def look(reader: RecordingReader, record: RunRecord) -> None:
        versions.append(record.header.versions.get("servetop", ""))
        times.append(recorded_watch_charts(reader, record)[0])

    found = compare_watches(paths, look=look)
    named = dict(zip((each.letter for each in found.watches), times, strict=True))
    return WatchesPage(
        names=[path.stem for path in paths],
        comparison=found,
        version=versions[0],
        time=columns_side_by_side(
            {letter: (time, _beginning(time)) for letter, time in named.items()}, [name for name, *_ in _CHARTS]
        ),
        charts=charts_side_by_side(named, _CHARTS),
    )


def _beginning(time: TimeColumns) -> float:
    at = time.columns["at"]
    return float(at[0]) - time.seconds / 2 if at.size else 0.0


def watches_html(page: WatchesPage) -> str:
    """Return the whole file."""
    return html_file(" and ".join(page.names), list(_sections(page)), _data(page))


def _sections(page: WatchesPage) -> Iterator[Markup | None]:
    found = page.comparison
    whole, *servers = found.servers
    letters = (each.letter for each in found.watches)
    yield element(
        "header",
        element("p", " · ".join(f"{a}: {name}" for a, name in zip(letters, page.names, strict=True)), class_="subject"),
        element("h1", "Watches side by side"),
        *(element("p", f"{text[0].upper()}{text[1:]}.", class_="figures") for text in remarks(found)),
    )
    yield element("section", element("h2", "What was watched"), _watches_table(page))
    yield element("section", element("h2", "Figures"), element("div", _table(whole, found), class_="tables"))
    if servers:
        tables = [_table(each, found) for each in servers]
        yield element("section", element("h2", "Each server"), element("div", *tables, class_="tables"))
    yield charts_section(_chart_help(page))
    yield element("section", element("h2", "Open it"), _commands(page))
    yield footer(page.version)


def _watches_table(page: WatchesPage) -> Markup:
    """Return a column for each watch: verdicts are lines, which wrap on a narrow screen."""
    columns = [
        (letter, name, *rest)
        for name, (letter, _, *rest) in zip(page.names, map(watch_row, page.comparison.watches), strict=True)
    ]
    head, *rows = zip(WATCH_COLUMNS, *columns, strict=True)
    return data_table(head, rows, caption="The watches", texts=range(len(head)))


def _table(server: ComparedServer, found: WatchComparison) -> Markup:
    columns = ("", *(each.letter for each in found.watches), *change_title(found))
    return data_table(columns, list(server_rows(server)), caption=server_title(server, found))


def _chart_help(page: WatchesPage) -> str:
    bins = "one second" if page.time.seconds == 1 else f"{page.time.seconds:g} seconds"
    several = any(each.servers > 1 for each in page.comparison.watches)
    sums = (
        " Lines of several servers are their sums, for the KV cache the fullest; sums have no latencies."
        if several
        else ""
    )
    return (
        f"Each watch begins at 0:00, with its first metrics. A point is {bins}.{sums} Drag to zoom all charts, "
        "double-click or Escape to zoom out; arrow keys move the cursor of a focused chart. Click a name to hide "
        "its line."
    )


def _commands(page: WatchesPage) -> Markup:
    commands = {
        "Compare them again": ("servetop", "compare", *page.names),
        **{
            f"The report of {each.letter} alone": ("servetop", "report", name)
            for each, name in zip(page.comparison.watches, page.names, strict=True)
        },
    }
    lines = [
        element("dt", what) + element("dd", element("code", shlex.join(words))) for what, words in commands.items()
    ]
    return element("dl", *(Markup(each) for each in lines))


def _data(page: WatchesPage) -> dict[str, object]:
    """Return what the script of a page reads; a watch has nothing of a client."""
    return {
        "objectives": {},
        "runs": [],
        "time": page.time.as_data(),
        "charts": [each.as_data() for each in page.charts],
        "episodes": [],
        "starts": [],
        "distributions": [],
        "heat": {},
        "load": [],
        "search": None,
    }
