"""`servetop plot`: the charts of a recording as text, for ssh and CI logs."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from rich.console import Group
from rich.text import Text

from servetop.cli.options.tool_options import PlotOptions
from servetop.cli.tables import UNLIMITED, out_tables, stdout_console
from servetop.core.errors import ExitCode, UsageError
from servetop.recordings.library.catalog import resolve
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.page.terminal_charts import DEFAULT_CHARTS, LATENCY, TextChart, terminal_charts
from servetop.reports.tables import titled
from servetop.run import console

_COLOURS = ("cyan", "yellow", "green", "magenta", "blue", "red", "bright_cyan", "bright_yellow")
"""Of the lines of a chart in order, on a terminal; they differ by their markers too."""
_NARROWEST, _WIDEST, _IN_FILES = 40, 120, 80
"""Columns of a chart without --width."""


def print_plots(options: PlotOptions) -> int:
    """Print the charts; OK, or UsageError if the recording has no values of a chart that is asked for."""
    with contextlib.closing(RecordingReader.open(resolve(options.file))) as reader:
        charts = terminal_charts(reader, names=options.metric or DEFAULT_CHARTS, width=options.width or _width())
        missing = [name for name in options.metric if name not in {each.name for each in charts}]
        if missing or not charts:
            raise UsageError(f"{reader.name} has no values for {_missing_text(missing)}")
        for chart in charts:
            out_tables(_printed(chart))
        if reader.damage is not None:
            console.message(reader.damage)
    return int(ExitCode.OK)


def _width() -> int:
    width = stdout_console().width
    return _IN_FILES if width == UNLIMITED else min(max(width, _NARROWEST), _WIDEST)


def _printed(chart: TextChart) -> Group:
    text = Text(chart.text, no_wrap=True, overflow="crop")
    for marker, colour in zip(chart.markers, _COLOURS, strict=False):
        text.highlight_words([marker], style=colour)
    return titled(chart.title, text)


def _missing_text(missing: Sequence[str]) -> str:
    """Return the charts that a recording lacks, and what to do."""
    if not missing:
        return "any chart: name another recording"
    why = " (it needs two loads)" if LATENCY in missing else ""
    return f"--metric {', '.join(missing)}{why}: leave it out, or name another recording"
