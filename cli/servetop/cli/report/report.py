"""Summaries, the sweep's tables and the list of recordings, on the terminal or as JSON."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from servetop.cli.report.energy_table import energy_rows, has_energy, millijoules_per_token
from servetop.cli.report.failures_table import failures_table
from servetop.cli.report.latency_table import latency_table
from servetop.cli.report.replicas_table import replicas_table
from servetop.cli.report.steady_table import UNSTEADY, steady_lines, steady_mark, steady_seconds, steady_table
from servetop.cli.report.trust_lines import trust_lines
from servetop.cli.report.turns_table import turns_table
from servetop.cli.tables import cell, light_table, out_first_that_fits, out_tables, stdout_console, titled
from servetop.core.errors import ExitCode
from servetop.core.events import RunEnd
from servetop.core.interfaces.recording_store import RecordingInfo, RecordingState
from servetop.recordings.library.catalog import list_recordings, resolve
from servetop.recordings.library.paths import recordings_folder
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.summary.summary import run_summary, without_figures
from servetop.recordings.write.recorder import WriteQueue
from servetop.run import console
from servetop.tui.drawing import formats

Summary = Mapping[str, Any]


def print_recording(name: str, *, as_json: bool, percentiles: Sequence[float] | None = None) -> int:
    """The summary of a recording; OK, whatever it says."""
    reader = RecordingReader.open(resolve(name))
    try:
        print_summary(run_summary(reader, percentiles=percentiles), as_json=as_json)
        if reader.damage is not None:
            console.message(reader.damage)
    finally:
        reader.close()
    return int(ExitCode.OK)


def print_summary(summary: Summary, *, as_json: bool) -> None:
    """JSON alone on stdout, or tables for a person."""
    if as_json:
        failed_early = summary["error"] and not summary["num_prompts"]
        console.out_json(without_figures(summary) if failed_early else summary)
        return
    out_tables(*_parts(summary))
    plot = grid_plot(summary["stages"], width=min(stdout_console().width, PLOT_WIDTH))
    if plot is not None:
        out_tables(plot)
    console.out(*trust_lines(summary))
    for line in steady_lines(summary["stages"]):
        console.out(line)
    incomplete = " (incomplete)" if summary.get("not_recorded") else ""
    console.out(f"recording  {summary['recording'] or 'none kept (--no-record)'}{incomplete}")


def _parts(summary: Summary) -> Iterator[Group]:
    """The tables that there is something to say in."""
    yield _totals(summary)
    if summary.get("failures"):
        yield failures_table(summary["failures"])
    yield latency_table(summary)
    if summary.get("turns"):
        yield turns_table(summary["turns"])
    steady = steady_table(summary)
    if steady is not None:
        yield steady
    if summary.get("models"):
        yield _models(summary["models"])
    if summary.get("replicas"):
        yield replicas_table(summary["replicas"])
    if len(summary["stages"]) > 1:
        yield _stages(summary["stages"])
    yield from grid_tables(summary["stages"])


def _totals(summary: Summary) -> Group:
    engine, server = summary["engine"], summary["server"]
    heading = " ".join(str(part) for part in (engine["name"], engine["version"], "·", summary["model_id"]) if part)
    table = light_table("", "")
    table.show_header = False
    requests = " / ".join(formats.exact(summary[key]) for key in ("completed", "failed", "cancelled"))
    for label, value in (
        ("Requests ok / failed / cancelled", requests),
        ("Duration", formats.minutes(summary["duration"] or 0.0)),
        ("Request throughput", _number(summary["request_throughput"], " req/s")),
        ("Output throughput", _number(summary["output_throughput"], " tok/s")),
        ("Total token throughput", _number(summary["total_token_throughput"], " tok/s")),
        ("Goodput", _number(summary["request_goodput"], " req/s")),
        ("KV blocks", formats.exact(engine["kv_blocks_total"])),
        ("Largest KV usage", formats.percent(server["max_kv_usage"])),
        ("Preemptions", formats.exact(server["preemptions"])),
        ("Prefix cache hits", formats.percent(server["prefix_cache_hit_rate"])),
        ("Most running / waiting", f"{formats.exact(server['max_running'])} / {formats.exact(server['max_waiting'])}"),
        *energy_rows(summary),
    ):
        table.add_row(label, value)
    return titled(heading, table)


def _models(models: Sequence[Summary]) -> Group:
    table = light_table("", "weight", "ok", "fail", "req/s", "tok/s", "TTFT\np50", "TTFT\np99", "ITL\np99")
    for model in models:
        keys = ("request_throughput", "output_throughput", "p50_ttft_ms", "p99_ttft_ms", "p99_itl_ms")
        ends = (formats.exact(model["completed"]), formats.exact(model["failed"]))
        table.add_row(cell(model["model"]), f"{model['weight']:g}", *ends, *(_number(model[key]) for key in keys))
    return titled("Models (latency in ms)", table)


def _stages(stages: Sequence[Summary]) -> Group:
    columns = ("", "ok", "fail", "req/s", "tok/s", "TTFT\np50", "TTFT\np99", "ITL\np99", "preempt.", "steady\ns")
    energy = has_energy(stages)
    table = light_table(*columns, *(("mJ/\ntok",) if energy else ()))
    for stage in stages:
        measured = ("request_throughput", "output_throughput", "p50_ttft_ms", "p99_ttft_ms", "p99_itl_ms")
        table.add_row(
            cell(stage["label"] + _stage_remark(stage)),
            formats.exact(stage["completed"]),
            formats.exact(stage["failed"]),
            *(_number(stage.get(key)) for key in measured),
            formats.exact(stage["preemptions"]),
            steady_seconds(stage),
            *((_number(millijoules_per_token(stage)),) if energy else ()),
        )
    return titled("Stages (latency in ms)", table)


def _stage_remark(stage: Summary) -> str:
    repeat = f" #{stage['repeat'] + 1}" if stage["repeat"] else ""
    return repeat if stage["finished"] else f"{repeat} (cut short)"


GRIDS = (
    ("Output throughput, tok/s", "output_throughput"),
    ("TTFT p99, ms", "p99_ttft_ms"),
    ("Preemptions", "preemptions"),
)


def grid_tables(stages: Sequence[Summary]) -> list[Group]:
    """Batch size down, request rate across, one table a figure; none when there is only one batch size."""
    batches, rates = _axes(stages)
    rows = {batch: _row(stages, batch) for batch in batches}
    return [_grid(title, key, rows=rows, rates=rates) for title, key in GRIDS] if rows and rates else []


PLOT_WIDTH = 100


def grid_plot(stages: Sequence[Summary], *, width: int) -> Group | None:
    """Output throughput over the request rate, one curve a batch size; None when there is no curve to draw."""
    batches, rates = _axes(stages)
    if len(rates) < 2 or not batches:
        return None
    from servetop.tui.drawing.report_plots import curves

    named = {f"batch {batch}": _curve(_row(stages, batch), rates) for batch in batches}
    measured = {name: points for name, points in named.items() if points}
    if not measured:
        return None
    drawn = curves(measured, across="requests/s", up="tok/s", width=width)
    return titled("Output throughput over request rate", Text(drawn))


def _curve(row: Sequence[Summary], rates: Sequence[float]) -> list[tuple[float, float]]:
    means = [(rate, _mean(row, rate, "output_throughput")) for rate in rates if math.isfinite(rate)]
    return [(rate, mean) for rate, mean in means if mean is not None]


def _axes(stages: Sequence[Summary]) -> tuple[list[int], list[float]]:
    """Batch sizes and request rates of the finished cells, ascending; nothing when there is one batch size only."""
    finished = [stage for stage in stages if stage["finished"]]
    batches = sorted({_batch(stage) for stage in finished})
    rates = sorted({float(stage["request_rate"]) for stage in finished if stage["request_rate"] is not None})
    return (batches, rates) if len(batches) > 1 else ([], [])


def _batch(stage: Summary) -> int:
    return int(stage["max_num_seqs"] or stage["max_concurrency"] or 0)


def _row(stages: Sequence[Summary], batch: int) -> list[Summary]:
    return [stage for stage in stages if stage["finished"] and _batch(stage) == batch]


def _grid(title: str, key: str, *, rows: Mapping[int, Sequence[Summary]], rates: Sequence[float]) -> Group:
    table = light_table("batch", *(f"{rate:g}" for rate in rates))
    for batch, row in rows.items():
        table.add_row(str(batch), *(_number(_mean(row, rate, key)) + _mark(row, rate) for rate in rates))
    words = "batch size down, requests/s across"
    marked = any(_mark(row, rate) for row in rows.values() for rate in rates)
    return titled(f"{title} ({words}{f'; {UNSTEADY} not steady' if marked else ''})", table)


def _mark(row: Sequence[Summary], rate: float) -> str:
    return steady_mark([stage for stage in row if float(stage["request_rate"] or 0) == rate])


def _mean(row: Sequence[Summary], rate: float, key: str) -> float | None:
    values = [s[key] for s in row if float(s["request_rate"] or 0) == rate and s.get(key) is not None]
    return sum(values) / len(values) if values else None


def _number(value: float | None, unit: str = "") -> str:
    return formats.number(value) + (unit if value is not None else "")


def print_end(end: RunEnd, reader: RecordingReader, *, unrecorded: WriteQueue | None = None) -> None:
    """On stderr: an engine's last lines where it failed, what is not recorded, and as the last line the reason."""
    if end.exit_code == ExitCode.ENGINE_FAILED:
        console.quote(line.text for line in reader.poll().log_lines[-LOG_TAIL:])
    if unrecorded is not None and str(unrecorded) not in end.reason:
        console.status(f"error: {unrecorded}")
    if end.exit_code:
        console.message(end.reason)


def print_recorded_end(recording: Path) -> bool:
    """The same of a finished recording; False when that does not say how its run ended."""
    with contextlib.closing(RecordingReader.open(recording)) as reader:
        if reader.end is not None:
            print_end(reader.end, reader)
        return reader.end is not None


LOG_TAIL = 12
"""Lines of an engine's log that a failure shows."""


def print_recordings(folder: Path | None, *, as_json: bool) -> int:
    """All recordings of a folder, newest first; OK also when there are none."""
    where = folder or recordings_folder()
    recordings = list_recordings(where)
    if as_json:
        console.out_json([dataclasses.asdict(each) for each in recordings], default=str)
    elif not recordings:
        console.out(f"no recordings in {where} yet: servetop makes one")
    else:
        print_list(recordings)
        console.out(*(each.problem for each in recordings if each.problem))
    return int(ExitCode.OK)


def print_list(recordings: Sequence[RecordingInfo]) -> None:
    """One line a recording, with as many columns as the terminal has room for."""
    out_first_that_fits(*(_list_table(recordings, without=LEFT_OUT[:count]) for count in range(len(LEFT_OUT) + 1)))


LEFT_OUT = ("model", "engine", "peak tok/s", "requests")
"""Columns of the list that a narrow terminal does without, in this order: the name says the first two as a rule."""


def _list_table(recordings: Sequence[RecordingInfo], *, without: Sequence[str]) -> Table:
    """Names are never cut off or folded: they are what one copies."""
    rows = [_list_row(each) for each in recordings]
    columns = [name for name in rows[0] if name not in without]
    table = light_table(*columns)
    for name, column in zip(columns, table.columns, strict=True):
        column.no_wrap, column.justify = True, "left" if name in ("recording", "engine", "model", "state") else "right"
    for row in rows:
        table.add_row(*(cell(row[name]) for name in columns))
    return table


def _list_row(info: RecordingInfo) -> dict[str, str]:
    return {
        "recording": info.path.stem,
        "engine": info.engine or formats.UNKNOWN,
        "model": info.model or formats.UNKNOWN,
        "time": formats.minutes(info.duration or 0.0),
        "requests": formats.exact(info.requests),
        "peak tok/s": formats.count(info.peak_output_tokens_per_s),
        "state": _state_words(info),
    }


def _state_words(info: RecordingInfo) -> str:
    if info.problem and info.state is not RecordingState.UNREADABLE:
        return "damaged"
    if info.exit_code is None:
        return str(info.state)
    return f"exit {info.exit_code}" if info.exit_code else "ok"
