"""The summary of a run on the terminal or as JSON, and how the run ended."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Group
from rich.text import Text

from servetop.analysis.summary.summary_json import plain_object, set_up_json, summary_json
from servetop.analysis.summary.summary_types import RunSummary
from servetop.cli.options.tool_options import SummaryOptions
from servetop.cli.report.cost_table import cost_table
from servetop.cli.report.goodput_tables import goodput_tables
from servetop.cli.report.reference_tables import reference_tables
from servetop.cli.report.repeats_table import repeats_table
from servetop.cli.report.report_markdown import recording_markdown, story_and_tables
from servetop.cli.report.run_tables import (
    exported_table,
    failures_table,
    latency_table,
    models_table,
    replicas_table,
    steady_table,
    telling_metrics,
    totals_table,
    turns_table,
)
from servetop.cli.report.search_lines import search_lines
from servetop.cli.report.stage_tables import PLOT_WIDTH, failed_lines, grid_plot, grid_tables, stages_table
from servetop.cli.report.watch_report import print_watch, print_watch_story, refuse_client_figures
from servetop.cli.tables import out_tables, stdout_console
from servetop.core.errors import ExitCode, UsageError
from servetop.core.events import RunEnd
from servetop.core.interfaces.unrecorded import Unrecorded
from servetop.core.text.sanitize import sanitize_line
from servetop.recordings.library.catalog import resolve
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.summary.run_story import run_story
from servetop.reports.summary.summary import run_summary
from servetop.reports.summary.summary_lines import (
    dataset_lines,
    skipped_lines,
    steady_lines,
    story_lines,
    threshold_lines,
    trust_lines,
)
from servetop.reports.summary.watch_story import watch_story
from servetop.reports.tables import titled
from servetop.run import console
from servetop.run.search.search_result import search_result

LOG_TAIL = 12
"""Lines of an engine's log that a failure shows."""


def print_of_options(options: SummaryOptions) -> int:
    """Print what the options ask of a recording: its summary, or only the story."""
    if options.markdown and options.as_json:
        raise UsageError("--json and --markdown exclude each other: give one of them")
    if options.markdown and not options.story:
        return _print_markdown(options.file)
    if options.story:
        return print_story(options)
    return print_recording(
        options.file, as_json=options.as_json, percentiles=options.metric_percentiles, prices=options.price
    )


def print_recording(
    name: str,
    *,
    as_json: bool,
    percentiles: Sequence[float] | None = None,
    prices: Sequence[str] = (),
    kept: bool = True,
) -> int:
    """Print the summary of a recording, which names the recording only if it is `kept`; OK, whatever its contents."""
    reader = RecordingReader.open(resolve(name))
    try:
        if reader.header.config.watch is not None:
            refuse_client_figures(percentiles, prices)
            print_watch(reader, as_json=as_json, kept=kept)
            return int(ExitCode.OK)
        summary = run_summary(reader, percentiles=percentiles, prices=prices)
        print_run(reader, summary if kept else replace(summary, recording=None), as_json=as_json)
        if reader.damage is not None:
            console.message(reader.damage)
    finally:
        reader.close()
    return int(ExitCode.OK)


def print_run(reader: RecordingReader, summary: RunSummary, *, as_json: bool) -> None:
    """Print the answers of a run that searched, and its summary; as JSON the summary alone."""
    if reader.header.config.search is not None and not as_json:
        console.out(*search_lines(search_result(reader, summary)), "")
    print_summary(summary, as_json=as_json)


def print_story(options: SummaryOptions) -> int:
    """Print what limited the run of a recording, and the lines that explain it; as JSON, the summary's `story`."""
    with contextlib.closing(RecordingReader.open(resolve(options.file))) as reader:
        if reader.header.config.watch is not None:
            story_of_watch = watch_story(reader, since=options.since, until=options.until)
            print_watch_story(story_of_watch, markdown=options.markdown, as_json=options.as_json)
            return int(ExitCode.OK)
        if options.since or options.until:
            raise UsageError(f"--since and --until: {reader.name} is a run, whose story is one: leave them out")
        story, sweep = run_story(reader)
    if options.as_json:
        console.out_json(plain_object(story))
    else:
        console.out(*(story_and_tables(story, sweep) if options.markdown else story_lines(story)))
    return int(ExitCode.OK)


def _print_markdown(name: str) -> int:
    """Print what `servetop report --format md` writes."""
    with contextlib.closing(RecordingReader.open(resolve(name))) as reader:
        console.out(*recording_markdown(reader, name=name))
    return int(ExitCode.OK)


def print_summary(summary: RunSummary, *, as_json: bool) -> None:
    """Print JSON alone on stdout, or tables for a person."""
    if as_json:
        failed_early = summary.error and not summary.requests.num_prompts
        console.out_json(set_up_json(summary) if failed_early else summary_json(summary))
        return
    out_tables(*_tables(summary))
    plot = grid_plot(summary.stages, width=min(stdout_console().width, PLOT_WIDTH))
    if plot is not None:
        out_tables(plot)
    console.out(*trust_lines(summary))
    console.out(*(f"steered    {stage.label}: {stage.steered}" for stage in summary.stages if stage.steered))
    console.out(*skipped_lines(summary.skipped or ()), *threshold_lines(summary.cell_thresholds))
    for line in steady_lines(summary.stages):
        console.out(line)
    if summary.story is not None:
        console.out(*story_lines(summary.story))
    console.out(*dataset_lines(summary.dataset))
    if summary.imported:
        console.out(f"imported   from {sanitize_line(summary.imported)}")
    incomplete = " (incomplete)" if summary.not_recorded else ""
    console.out(f"recording  {summary.recording or 'none kept (--no-record)'}{incomplete}")


def print_failed_cells(summary: RunSummary) -> None:
    """Print why cells of a sweep failed; nothing without such a cell."""
    out_tables(*_failed_cells(summary))


def _failed_cells(summary: RunSummary) -> Iterator[Group]:
    if failed := failed_lines(summary.stages):
        yield titled("Failed cells", Text("\n".join(map(sanitize_line, failed))))


def _tables(summary: RunSummary) -> Iterator[Group]:
    """Yield the tables that have contents."""
    yield totals_table(summary)
    if summary.failures:
        yield failures_table(summary.failures)
    yield latency_table(summary.requests)
    if summary.measured.turns:
        yield turns_table(summary.measured.turns)
    telling = telling_metrics(summary.engine_metrics or ())
    if telling:
        yield exported_table(telling)
    steady = steady_table(summary)
    if steady is not None:
        yield steady
    if summary.models:
        yield models_table(summary.models)
    if summary.replicas:
        yield replicas_table(summary.replicas)
    yield from _stage_tables(summary)


def _stage_tables(summary: RunSummary) -> Iterator[Group]:
    """Yield the tables by stage and by cell."""
    if len(summary.stages) > 1:
        yield stages_table(summary.stages)
        yield from _failed_cells(summary)
        costs = cost_table(summary.stages)
        if costs is not None:
            yield costs
    yield from grid_tables(summary.stages, summary.skipped or (), () if summary.sweep is None else summary.sweep.cells)
    if summary.sweep is not None:
        yield from goodput_tables(summary.sweep)
        if (repeats := repeats_table(summary.sweep)) is not None:
            yield repeats
        yield from reference_tables(summary.sweep)


def print_end(end: RunEnd, reader: RecordingReader, *, unrecorded: Unrecorded | None = None) -> None:
    """Print on stderr: the engine's last log lines if it failed, what is not recorded, and last the reason."""
    if end.exit_code == ExitCode.ENGINE_FAILED:
        console.quote(line.text for line in reader.poll().log_lines[-LOG_TAIL:])
    if unrecorded is not None and str(unrecorded) not in end.reason:
        console.status(f"error: {unrecorded}")
    if end.exit_code:
        console.message(end.reason)


def print_recorded_end(recording: Path) -> bool:
    """Print the end of a finished recording; False if it does not contain how its run ended."""
    with contextlib.closing(RecordingReader.open(recording)) as reader:
        if reader.end is not None:
            print_end(reader.end, reader)
        return reader.end is not None
