"""The summary of a watch on the terminal or as JSON: the server's own figures, and nothing of a client."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from rich.console import Group

from servetop.analysis.summary.summary_json import plain_object
from servetop.analysis.summary.watch_types import ReplicaWatch, WatchSummary
from servetop.cli.report.run_tables import exported_table, telling_metrics
from servetop.cli.tables import out_tables
from servetop.core.errors import UsageError
from servetop.core.text import formats
from servetop.core.text.sanitize import sanitize_line
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.markdown import escaped
from servetop.reports.summary.watch_rows import (
    LATENCIES,
    LATENCY_CAPTION,
    SERVER_CAPTION,
    SERVER_COLUMNS,
    latency_rows,
    server_remarks,
    server_row,
    total_rows,
    watch_title,
)
from servetop.reports.summary.watch_story import WatchStory
from servetop.reports.summary.watch_summary import watch_summary
from servetop.reports.tables import cell, light_table, titled
from servetop.run import console

_MOST_LINES = 200
"""Lines of a story on the terminal."""
_MOST_UNKNOWN = 12
"""Metrics of an unknown engine in the summary."""


def refuse_client_figures(percentiles: Sequence[float] | None, prices: Sequence[str]) -> None:
    """Raise UsageError for an option of `summary` about requests, of which a watch has none."""
    for option, values in (("--metric-percentiles", percentiles), ("--price", prices)):
        if values:
            raise UsageError(f"{option}: a watch has no requests of its own: leave it out")


def print_watch(reader: RecordingReader, *, as_json: bool, kept: bool = True) -> None:
    """Print the summary of a recorded watch, which names the recording only if it is `kept`."""
    summary = watch_summary(reader)
    summary = summary if kept else dataclasses.replace(summary, recording=None)
    if as_json:
        console.out_json(plain_object(summary))
        return
    out_tables(*_tables(summary))
    console.out(f"verdict    {summary.headline}")
    for limit in summary.watched.limits if summary.watched is not None else ():
        console.out(f"{formats.clock(limit.onset):>9}  {limit.name}, for {formats.clock(limit.seconds)} in all")
    for line in server_remarks(summary.replicas or (), summary.headline):
        console.out(line)
    console.out(f"recording  {summary.recording or 'none kept (--no-record)'}")
    if reader.damage is not None:
        console.message(reader.damage)


def print_watch_story(story: WatchStory, *, markdown: bool, as_json: bool) -> None:
    """Print what happened in the window of a watch, by local time."""
    if as_json:
        console.out_json(dataclasses.asdict(story))
        return
    shown, more = story.lines[:_MOST_LINES], len(story.lines) - _MOST_LINES
    texts = [f"{f'{each.server}: ' if each.server else ''}{each.text}" for each in shown]
    rest = [f"and {more:,} more: give a shorter time with --since and --until, or --json"] if more > 0 else []
    if markdown:
        items = (f"- {each.time} {escaped(text)}" for each, text in zip(shown, texts, strict=True))
        console.out(f"**{escaped(story.headline)}**", "", f"{story.since} to {story.until}", "", *items, *rest)
        return
    console.out(f"{story.since} to {story.until}: {sanitize_line(story.headline)}")
    console.out(*(f"{each.time}  {sanitize_line(text)}" for each, text in zip(shown, texts, strict=True)), *rest)


def _tables(summary: WatchSummary) -> Iterator[Group]:
    """Yield the tables that have contents."""
    yield _totals(summary)
    if summary.replicas is not None:
        yield _replicas(summary.replicas)
    metrics = summary.engine_metrics or ()
    if rows := latency_rows(summary):
        table = light_table("", "mean", "p50", "p90")
        for row in rows:
            table.add_row(*row)
        yield titled(LATENCY_CAPTION, table)
    telling = [each for each in telling_metrics(metrics) if each.name not in LATENCIES]
    if summary.watched is not None and not summary.watched.judged:  # by its own names, or its answers
        telling = [each for each in metrics if each.value][:_MOST_UNKNOWN]
    if telling:
        yield exported_table(telling)


def _totals(summary: WatchSummary) -> Group:
    """Return the figures that the server exports, in one column; a figure that it does not export has no row."""
    table = light_table("", "")
    table.show_header = False
    for label, value in total_rows(summary):
        table.add_row(label, value)
    return titled(f"watch · {watch_title(summary)}", table)


def _replicas(replicas: Sequence[ReplicaWatch]) -> Group:
    """Return one row for each of several servers."""
    table = light_table("", *SERVER_COLUMNS)
    for each in replicas:
        table.add_row(*(cell(text) for text in server_row(each)))
    return titled(SERVER_CAPTION, table)
