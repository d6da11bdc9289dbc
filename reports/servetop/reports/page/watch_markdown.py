"""The report of a watch as Markdown, for a pull request or an incident."""

from __future__ import annotations

from collections.abc import Iterator

from servetop.analysis.summary.watch_types import WatchSummary
from servetop.core.text import formats
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.markdown import escaped, table
from servetop.reports.summary.watch_rows import (
    LATENCY_CAPTION,
    SERVER_TITLES,
    latency_rows,
    server_remarks,
    server_row,
    total_rows,
    watch_title,
)
from servetop.reports.summary.watch_story import watch_story
from servetop.reports.summary.watch_summary import watch_summary

_MOST = 40
"""Lines of the story of several servers."""


def watch_report_lines(reader: RecordingReader) -> list[str]:
    """Return the verdict first, then what limited the server and when, its figures, and a row for each of several."""
    summary = watch_summary(reader)
    lines = [f"**{escaped(summary.headline)}**", "", escaped(watch_title(summary)), ""]
    limits = summary.watched.limits if summary.watched is not None else ()
    lines += [
        f"- {formats.clock(each.onset)} {escaped(each.name)}, for {formats.clock(each.seconds)} in all"
        for each in limits
    ]
    lines += [f"- {escaped(text)}" for text in server_remarks(summary.replicas or (), summary.headline)]
    if summary.replicas:
        story = watch_story(reader).lines
        lines += [
            f"- {each.time} {escaped(': '.join(filter(None, (each.server, each.text))))}" for each in story[:_MOST]
        ]
        lines += [f"- and {len(story) - _MOST:,} more: servetop summary --story has them"] if len(story) > _MOST else []
    return [*lines, *([] if lines[-1] == "" else [""]), *_tables(summary)]


def _tables(summary: WatchSummary) -> Iterator[str]:
    yield from table(["", ""], [[name, escaped(text)] for name, text in total_rows(summary)], align=[":--", "--:"])
    if summary.replicas:
        columns = ["server", *SERVER_TITLES]
        rows = [[escaped(text) for text in server_row(each)] for each in summary.replicas]
        yield ""
        yield from table(columns, rows, align=[":--", *["--:"] * len(SERVER_TITLES)])
    if latencies := latency_rows(summary):
        yield from ("", f"{LATENCY_CAPTION}:", "")
        yield from table(["", "mean", "p50", "p90"], latencies, align=[":--", *["--:"] * 3])
