"""`servetop engines`: the supported engines, which are installed, and the metrics of each."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from servetop.cli.tables import out_tables
from servetop.core.errors import ExitCode
from servetop.engines.capabilities import Capability, capabilities
from servetop.reports.tables import cell, light_table, titled
from servetop.run import console

COLUMNS = {
    "run": "running",
    "wait": "waiting",
    "KV": "kv_usage",
    "preempt": "preemptions_total",
    "prefix": "prefix_cache_queries_total",
    "tok": "generation_tokens_total",
    "queue": "queue_seconds_total",
    "TTFT": "first_token_seconds_total",
    "limit": "max_num_seqs",
}
"""Labels of the table, and the field of EngineSample of each."""
LEGEND = (
    "run, wait: requests; KV: blocks in use; preempt: preemptions; prefix: its cache's hits; tok: generated tokens; "
    "queue, TTFT: the engine's own times; limit: its batch size. More of one: servetop engines NAME"
)


def print_engines(name: str | None, *, as_json: bool) -> int:
    """Print all engines in a table, or everything known about one."""
    found = capabilities([name] if name else [])
    if as_json:
        console.out_json([dataclasses.asdict(each) for each in found], indent=2)
        return ExitCode.OK
    if name:
        _print_one(found[0])
        return ExitCode.OK
    out_tables(titled("Engines", engines_table(found)), Text(LEGEND, style="dim"))
    absent = light_table("not here", "how to get it")
    absent.columns[0].no_wrap, absent.columns[1].justify, absent.columns[1].no_wrap = True, "left", False
    for each in found:
        if each.installed is None:
            absent.add_row(cell(each.name), cell(each.trouble or each.install))
    if absent.row_count:
        out_tables(titled("Not installed here", absent))
    return ExitCode.OK


def engines_table(found: Sequence[Capability]) -> Table:
    """Return one row per engine; labels mark the metrics it exports, because columns would not fit into 80 cells."""
    table = light_table("engine", "here", "what its metrics say")
    table.columns[0].no_wrap = True
    for column in table.columns[1:]:
        column.justify, column.no_wrap = "left", False
    for each in found:
        words = [word if field in each.exports else f"{'-':<{len(word)}}" for word, field in COLUMNS.items()]
        table.add_row(cell(each.name), cell(each.installed or "-"), cell(" ".join(words).rstrip()))
    return table


def _print_one(each: Capability) -> None:
    rows = {
        "engine": each.title,
        "here": each.installed or f"no: {each.install}",
        "endpoints": ", ".join(each.endpoints),
        "batch size": each.batch_size,
        "exports": ", ".join(each.exports) or "nothing: it has no metrics",
        "trouble": each.trouble,
    }
    table = Table.grid(padding=(0, 2))
    for key, words in rows.items():
        if words:
            table.add_row(Text(key, style="bold"), cell(words))
    out_tables(table)
