"""Summaries, the sweep's tables and the list of recordings, on the terminal or as JSON."""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from servetop.cli.energy_report import energy_rows, has_energy, millijoules_per_token
from servetop.cli.replicas_table import replicas_table
from servetop.cli.steady_report import UNSTEADY, steady_lines, steady_mark, steady_seconds, steady_table
from servetop.cli.tables import light_table, titled
from servetop.cli.turns_table import turns_table
from servetop.core.errors import ExitCode
from servetop.core.shelf import RecordingInfo
from servetop.recordings.catalog import list_recordings, resolve
from servetop.recordings.places import recordings_folder
from servetop.recordings.reader import RecordingReader
from servetop.recordings.summary import run_summary
from servetop.tui import formats

Summary = Mapping[str, Any]


def print_recording(name: str, *, as_json: bool) -> int:
    """The summary of a recording; OK, whatever it says."""
    reader = RecordingReader.open(resolve(name))
    try:
        print_summary(run_summary(reader), as_json=as_json)
    finally:
        reader.close()
    return int(ExitCode.OK)


def print_summary(summary: Summary, *, as_json: bool) -> None:
    """JSON alone on stdout, or tables for a person."""
    if as_json:
        sys.stdout.write(json.dumps(summary, allow_nan=False) + "\n")
        return
    console = Console()
    console.print(_totals(summary))
    console.print(_latencies(summary))
    if summary.get("turns"):
        console.print(turns_table(summary["turns"]))
    steady = steady_table(summary)
    if steady is not None:
        console.print(steady)
    if summary.get("models"):
        console.print(_models(summary["models"]))
    if summary.get("replicas"):
        console.print(replicas_table(summary["replicas"]))
    if len(summary["stages"]) > 1:
        console.print(_stages(summary["stages"]))
    for table in grid_tables(summary["stages"]):
        console.print(table)
    plot = grid_plot(summary["stages"], width=min(console.width, PLOT_WIDTH))
    if plot is not None:
        console.print(plot)
    _print_trust(console, summary)
    for line in steady_lines(summary["stages"]):
        console.print(Text(line), soft_wrap=True)
    console.print(Text(f"recording  {summary['recording']}"), soft_wrap=True)


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
        ("Most running / waiting", f"{formats.exact(server['max_running'])} / {formats.exact(server['max_waiting'])}"),
        *energy_rows(summary),
    ):
        table.add_row(label, value)
    return titled(heading, table)


def _latencies(summary: Summary) -> Group:
    table = light_table("", "mean", "p50", "p90", "p99")
    for metric, name in (("ttft", "TTFT"), ("tpot", "TPOT"), ("itl", "ITL"), ("e2el", "E2EL")):
        cells = [_number(summary.get(f"{statistic}_{metric}_ms")) for statistic in ("mean", "p50", "p90", "p99")]
        table.add_row(name, *cells)
    return titled("Latency, ms", table)


def _models(models: Sequence[Summary]) -> Group:
    table = light_table("", "weight", "ok", "fail", "req/s", "tok/s", "TTFT\np50", "TTFT\np99", "ITL\np99")
    for model in models:
        keys = ("request_throughput", "output_throughput", "p50_ttft_ms", "p99_ttft_ms", "p99_itl_ms")
        ends = (formats.exact(model["completed"]), formats.exact(model["failed"]))
        table.add_row(Text(model["model"]), f"{model['weight']:g}", *ends, *(_number(model[key]) for key in keys))
    return titled("Models (latency in ms)", table)


def _stages(stages: Sequence[Summary]) -> Group:
    columns = ("", "ok", "fail", "req/s", "tok/s", "TTFT\np50", "TTFT\np99", "ITL\np99", "preempt.", "steady\ns")
    energy = has_energy(stages)
    table = light_table(*columns, *(("mJ/\ntok",) if energy else ()))
    for stage in stages:
        measured = ("request_throughput", "output_throughput", "p50_ttft_ms", "p99_ttft_ms", "p99_itl_ms")
        table.add_row(
            Text(stage["label"] + _stage_remark(stage)),
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
    from servetop.tui.plots import curves

    named = {f"batch {batch}": _curve(_row(stages, batch), rates) for batch in batches}
    drawn = curves(
        {name: points for name, points in named.items() if points}, across="requests/s", up="tok/s", width=width
    )
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


def _print_trust(console: Console, summary: Summary) -> None:
    trust = summary["trust"]
    words = "; ".join(trust.get("reasons", ())) or "slip, loop lag, rates and engine counters agree"
    console.print(Text(f"trust      {trust['verdict']}: {words}"), soft_wrap=True)


def print_end(recording: Path) -> None:
    """On stderr: the engine's last lines when it was the engine that failed; the last line is the reason."""
    reader = RecordingReader.open(recording)
    try:
        update = reader.poll()
    finally:
        reader.close()
    if update.end is None or not update.end.exit_code:
        return
    if update.end.exit_code == ExitCode.ENGINE_FAILED:
        sys.stderr.writelines(f"  │ {line.text}\n" for line in update.log_lines[-LOG_TAIL:])
    sys.stderr.write(f"servetop: {update.end.reason}\n")


LOG_TAIL = 12
"""Lines of an engine's log that a failure shows."""


def print_recordings(folder: Path | None, *, as_json: bool) -> int:
    """All recordings of a folder, newest first; OK also when there are none."""
    where = folder or recordings_folder()
    recordings = list_recordings(where)
    if as_json:
        sys.stdout.write(json.dumps([dataclasses.asdict(each) for each in recordings], default=str) + "\n")
    elif not recordings:
        sys.stdout.write(f"no recordings in {where} yet: servetop makes one\n")
    else:
        Console().print(_list_table(recordings))
    return int(ExitCode.OK)


def _list_table(recordings: Sequence[RecordingInfo]) -> Table:
    columns = ("recording", "engine", "model", "time", "requests", "peak tok/s", "state")
    table = light_table(*columns)
    for name in ("engine", "model", "state"):
        table.columns[columns.index(name)].justify = "left"
    for each in recordings:
        table.add_row(
            Text(each.path.stem),
            Text(each.engine or formats.UNKNOWN),
            Text(each.model or formats.UNKNOWN),
            formats.minutes(each.duration or 0.0),
            formats.exact(each.requests),
            formats.count(each.peak_output_tokens_per_s),
            Text(_state_words(each)),
        )
    return table


def _state_words(info: RecordingInfo) -> str:
    if info.exit_code is None:
        return str(info.state)
    return f"exit {info.exit_code}" if info.exit_code else "ok"
