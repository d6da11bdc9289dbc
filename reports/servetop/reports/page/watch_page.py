"""The page of a watch: what limited which server, its figures and charts, and no part that needs a client."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from servetop.analysis.diagnosis.episode import Episode
from servetop.analysis.diagnosis.run_record import RunRecord
from servetop.analysis.fleet.watch_thresholds import parse_watch_threshold
from servetop.analysis.summary.watch_types import ReplicaWatch, WatchSummary
from servetop.core.config_values.watch_config import WatchConfig
from servetop.core.events import Note
from servetop.core.text import formats
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.page.chart_specs import ChartSpec, time_charts
from servetop.reports.page.html_file import charts_section, details, footer, html_file
from servetop.reports.page.html_text import Markup, commands_list, data_table, element, items
from servetop.reports.page.time_columns import TimeColumns
from servetop.reports.page.watched_columns import (
    MOST_SERVERS,
    ServerHistory,
    charts_of_servers,
    columns_of_servers,
    recorded_watch_charts,
)
from servetop.reports.summary.manifest_sections import manifest_sections
from servetop.reports.summary.recorded_run import recorded_run
from servetop.reports.summary.replica_watches import replica_records
from servetop.reports.summary.watch_checks import judged_servers
from servetop.reports.summary.watch_rows import (
    LATENCY_CAPTION,
    SERVER_CAPTION,
    SERVER_TITLES,
    latency_rows,
    server_remarks,
    server_row,
    total_rows,
    watch_title,
)
from servetop.reports.summary.watch_summary import watch_summary

MOST_NOTES = 100
_NEWS = ("engine", "metrics", "user", "on-episode")
"""Sources of the notes that the page lists."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WatchPage:
    """A recorded watch as a page."""

    name: str
    summary: WatchSummary
    record: RunRecord
    servers: Sequence[ServerHistory]
    """Each of several servers; empty for one that was watched alone."""
    thresholds: Sequence[tuple[str, str, str]]
    """Each recorded threshold, the server, and the result."""
    time: TimeColumns
    charts: Sequence[ChartSpec]
    shown: Sequence[ServerHistory]
    """Those of several servers that have lines in the charts."""


def watch_page(reader: RecordingReader, *, name: str) -> WatchPage:
    """Read what the page of a watch shows; RecordingError if it cannot be read."""
    record = recorded_run(reader)
    summary = watch_summary(reader, record=record)
    servers = [
        ServerHistory(name=who, record=each, series=series) for who, each, series in replica_records(reader, record)
    ]
    shown = _worst(servers, summary.replicas or ())
    if servers:
        time, charts = columns_of_servers(shown), charts_of_servers(shown)
    else:
        time, charts = recorded_watch_charts(reader, record)
    return WatchPage(
        name=name,
        summary=summary,
        record=record,
        servers=servers,
        thresholds=list(_thresholds(reader, record)),
        time=time,
        charts=time_charts(time, charts),
        shown=shown,
    )


def _worst(servers: Sequence[ServerHistory], replicas: Sequence[ReplicaWatch]) -> list[ServerHistory]:
    """Return the servers that the charts show: those longest at a limit or silent, as many as there is room for."""

    def trouble(each: ReplicaWatch) -> float:
        watched = each.watched
        return 0.0 if watched is None else watched.seconds_without_metrics + sum(one.seconds for one in watched.limits)

    hurts = {place: trouble(each) for place, each in enumerate(replicas)}
    chosen = sorted(range(len(servers)), key=lambda place: -hurts.get(place, 0.0))[:MOST_SERVERS]
    return [servers[place] for place in sorted(chosen)]


def _thresholds(reader: RecordingReader, record: RunRecord) -> Iterator[tuple[str, str, str]]:
    config = reader.header.config
    wanted = [parse_watch_threshold(text) for text in config.thresholds]
    hold = (config.watch or WatchConfig()).hold
    for server, threshold, found in judged_servers(reader, wanted, hold=hold, record=record) if wanted else ():
        text = (found.broken or found.undecided).removeprefix(threshold.text).removeprefix(": ").strip()
        yield threshold.text, server or "the server", text or "kept"


def watch_html(page: WatchPage) -> str:
    """Return the whole file."""
    return html_file(page.summary.label or page.name, list(_sections(page)), _data(page))


def _sections(page: WatchPage) -> Iterator[Markup | None]:
    summary = page.summary
    yield element(
        "header",
        element("p", " · ".join(_subject(page)), class_="subject"),
        element("h1", summary.headline),
        element("p", "The load was that of others: every figure is the server's own.", class_="figures"),
    )
    latencies = latency_rows(summary)
    tables = [data_table(("", ""), total_rows(summary), caption="Totals" if page.servers else "Figures")]
    tables += [data_table(("", "mean", "p50", "p90"), latencies, caption=LATENCY_CAPTION)] if latencies else []
    yield element("section", element("h2", "Figures"), element("div", *tables, class_="tables"), *_server_parts(page))
    if page.thresholds:
        table = data_table(("Condition", "Server", "Result"), page.thresholds, caption="Thresholds", texts=(1, 2))
        yield element("section", element("h2", "Thresholds"), table)
    yield charts_section(_chart_help(page), _episodes_table(page), _notes_table(page))
    manifest = [
        data_table(("", ""), list(values.items()), caption=name.capitalize())
        for name, values in manifest_sections(page.record.header).items()
    ]
    yield details("Manifest: what was watched", element("div", *manifest, class_="manifest"))
    yield element("section", element("h2", "Open it"), _commands(page))
    yield footer(page.record.header.versions.get("servetop", ""))


def _subject(page: WatchPage) -> Iterator[str]:
    summary = page.summary
    if summary.label:
        yield summary.label
    yield f"{len(page.servers)} servers" if page.servers else summary.url or "watch"
    yield watch_title(summary)
    yield manifest_sections(page.record.header)["run"]["start"]
    if summary.recording_state != "finished":
        yield f"recording {summary.recording_state}"


def _server_parts(page: WatchPage) -> Iterator[Markup]:
    if page.summary.replicas is None:
        return
    columns = ("", *SERVER_TITLES, "verdict")
    rows = [(*server_row(each), each.headline) for each in page.summary.replicas]
    yield data_table(columns, rows, caption=SERVER_CAPTION, texts=(columns.index("version"), len(columns) - 1))
    if remarks := list(server_remarks(page.summary.replicas or (), page.summary.headline)):
        yield items("ul", remarks)


def _chart_help(page: WatchPage) -> str:
    left_out = len(page.servers) - len(page.shown)
    more = f" Of {len(page.servers)} servers the {MOST_SERVERS} with the longest limits are drawn." if left_out else ""
    return (
        "Drag to zoom all charts, double-click or Escape to zoom out; arrow keys move the cursor of a focused chart. "
        f"Click a name to hide its line. Shaded: episodes, listed below.{more}"
    )


def _episodes(page: WatchPage) -> Iterator[tuple[str, Episode]]:
    """Yield each episode with the name of its server, by their beginning."""
    found = [(each.name, episode) for each in page.servers for episode in each.record.episodes]
    found += [] if page.servers else [("", episode) for episode in page.record.episodes]
    yield from sorted(found, key=lambda named: named[1].begin)


def _episodes_table(page: WatchPage) -> Markup | None:
    rows = [
        (
            each.kind.value,
            *([name] if page.servers else []),
            formats.clock(each.begin),
            "end of watch" if each.end is None else formats.clock(each.end),
            formats.seconds(each.seconds(page.record.until)),
        )
        for name, each in _episodes(page)
    ]
    columns = ("Episode", *(["Server"] if page.servers else []), "From", "To", "Length")
    return data_table(columns, rows, caption="Episodes", texts=(1,) if page.servers else ()) if rows else None


def _notes_table(page: WatchPage) -> Markup | None:
    notes: list[Note] = [each for each in page.record.notes if each.source in _NEWS]
    rows = [(formats.clock(each.at), each.severity.value, each.text) for each in notes[:MOST_NOTES]]
    caption = "Events" if len(notes) <= MOST_NOTES else f"Events: the first {MOST_NOTES} of {len(notes):,}"
    return data_table(("At", "Kind", "What happened"), rows, caption=caption, texts=(1, 2)) if rows else None


def _commands(page: WatchPage) -> Markup:
    recorded = page.record.header.manifest.get("command_line")
    return commands_list(
        {
            "Open it on the dashboard": shlex.join(("servetop", "replay", page.name)),
            "Print its figures": shlex.join(("servetop", "summary", page.name)),
            **({"Recorded as": shlex.join(map(str, recorded))} if isinstance(recorded, list) else {}),
        }
    )


def _data(page: WatchPage) -> dict[str, object]:
    """Return what the script of a page reads; a watch has nothing of a client."""
    return {
        "objectives": {},
        "runs": [],
        "time": page.time.as_data(),
        "charts": [each.as_data() for each in page.charts],
        "episodes": [
            {"kind": each.kind.value, "begin": each.begin, "end": page.record.until if each.end is None else each.end}
            for _, each in _episodes(page)
        ],
        "starts": [],
        "distributions": [],
        "heat": {},
        "load": [],
        "search": None,
    }
