"""Summaries, the sweep's tables and the list of recordings, on the terminal or as JSON."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from servetop.core.errors import ExitCode
from servetop.recordings.catalog import RecordingInfo, list_recordings, recordings_folder, resolve
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
    if len(summary["stages"]) > 1:
        console.print(_stages(summary["stages"]))
    for table in grid_tables(summary["stages"]):
        console.print(table)
    _print_trust(console, summary)
    console.print(Text(f"recording  {summary['recording']}"), soft_wrap=True)


def _totals(summary: Summary) -> Table:
    engine, server = summary["engine"], summary["server"]
    table = Table(title=Text(f"{engine['name']} {engine['version'] or ''} · {summary['model_id']}"), show_header=False)
    for label, value in (
        (
            "Requests ok / failed / cancelled",
            f"{summary['completed']:,} / {summary['failed']:,} / {summary['cancelled']:,}",
        ),
        ("Duration", formats.minutes(summary["duration"] or 0.0)),
        ("Request throughput", _number(summary["request_throughput"], " req/s")),
        ("Output throughput", _number(summary["output_throughput"], " tok/s")),
        ("Total token throughput", _number(summary["total_token_throughput"], " tok/s")),
        ("Goodput", _number(summary["request_goodput"], " req/s")),
        ("KV blocks", _number(engine["kv_blocks_total"])),
        ("Largest KV usage", formats.percent(server["max_kv_usage"])),
        ("Preemptions", _number(server["preemptions"])),
        ("Most running / waiting", f"{_number(server['max_running'])} / {_number(server['max_waiting'])}"),
    ):
        table.add_row(label, value)
    return table


def _latencies(summary: Summary) -> Table:
    table = Table(title="Latency, ms")
    for column in ("", "mean", "p50", "p90", "p99"):
        table.add_column(column, justify="right" if column else "left")
    for metric, name in (("ttft", "TTFT"), ("tpot", "TPOT"), ("itl", "ITL"), ("e2el", "E2EL")):
        cells = [_number(summary.get(f"{statistic}_{metric}_ms")) for statistic in ("mean", "p50", "p90", "p99")]
        table.add_row(name, *cells)
    return table


def _stages(stages: Sequence[Summary]) -> Table:
    table = Table(title="Stages")
    for column in ("stage", "ok", "failed", "req/s", "out tok/s", "TTFT p50", "TTFT p99", "ITL p99", "preempt."):
        table.add_column(column, justify="left" if column == "stage" else "right")
    for stage in stages:
        numbers = (
            "completed", "failed", "request_throughput", "output_throughput",
            "p50_ttft_ms", "p99_ttft_ms", "p99_itl_ms", "preemptions",
        )  # fmt: skip
        table.add_row(Text(stage["label"]), *(_number(stage.get(key)) for key in numbers))
    return table


GRIDS = (
    ("Output throughput, tok/s", "output_throughput"),
    ("TTFT p99, ms", "p99_ttft_ms"),
    ("Preemptions", "preemptions"),
)


def grid_tables(stages: Sequence[Summary]) -> list[Table]:
    """Batch size down, request rate across, one table a figure; none when there is only one of either."""
    batches = sorted({stage["max_num_seqs"] or stage["max_concurrency"] or 0 for stage in stages})
    rates = sorted({float(stage["request_rate"]) for stage in stages if stage["request_rate"] is not None})
    if len(batches) < 2 or not rates:
        return []
    return [_grid(title, key, stages, batches, rates) for title, key in GRIDS]


def _grid(title: str, key: str, stages: Sequence[Summary], batches: Sequence[int], rates: Sequence[float]) -> Table:
    table = Table(title=f"{title} (batch size × requests/s; means of repeats)")
    table.add_column("batch", justify="right")
    for rate in rates:
        table.add_column(f"{rate:g}", justify="right")
    for batch in batches:
        row = [s for s in stages if (s["max_num_seqs"] or s["max_concurrency"] or 0) == batch]
        table.add_row(str(batch), *(_number(_mean(row, rate, key)) for rate in rates))
    return table


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
    """On stderr: why a run failed, with the engine's last lines when it was the engine."""
    reader = RecordingReader.open(recording)
    try:
        update = reader.poll()
    finally:
        reader.close()
    if update.end is None or not update.end.exit_code:
        return
    sys.stderr.write(f"servetop: {update.end.reason}\n")
    if update.end.exit_code == ExitCode.ENGINE_FAILED:
        sys.stderr.writelines(f"  │ {line.text}\n" for line in update.log_lines[-LOG_TAIL:])


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
    table = Table(title=None)
    for column in ("recording", "engine", "model", "duration", "requests", "peak tok/s", "state"):
        right = column in ("duration", "requests", "peak tok/s")
        table.add_column(column, justify="right" if right else "left", overflow="fold")
    for each in recordings:
        table.add_row(
            Text(each.path.name),
            Text(each.engine or formats.UNKNOWN),
            Text(each.model or formats.UNKNOWN),
            formats.minutes(each.duration or 0.0),
            formats.exact(each.requests),
            formats.count(each.peak_output_tokens_per_s),
            Text(each.state),
        )
    return table
