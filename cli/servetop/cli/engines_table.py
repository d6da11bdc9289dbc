"""`servetop engines`: which there are, which are here, and what each tells."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from servetop.cli.tables import light_table, titled
from servetop.core.errors import ExitCode
from servetop.engines.capabilities import Capability, capabilities

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
"""Headings, and the field of EngineSample that each stands for."""
LEGEND = (
    "run, wait: requests; KV: blocks in use; preempt: preemptions; prefix: its cache's hits; tok: generated tokens; "
    "queue, TTFT: the engine's own times; limit: its batch size. More of one: servetop engines NAME"
)


def print_engines(name: str | None, *, as_json: bool) -> int:
    """All in a table, or all that is known of one."""
    found = capabilities([name] if name else [])
    if as_json:
        sys.stdout.write(json.dumps([dataclasses.asdict(each) for each in found], indent=2) + "\n")
        return ExitCode.OK
    console = Console(highlight=False)
    if name:
        _print_one(console, found[0])
        return ExitCode.OK
    console.print(titled("Engines", _table(found)))
    console.print(Text(LEGEND, style="dim"))
    absent = light_table("not here", "how to get it")
    absent.columns[1].justify, absent.columns[1].no_wrap = "left", False
    for each in found:
        if each.installed is None:
            absent.add_row(Text(each.name), Text(each.trouble or each.install))
    if absent.row_count:
        console.print(titled("Not installed here", absent))
    return ExitCode.OK


def _table(found: Sequence[Capability]) -> Table:
    table = light_table("engine", "here", *COLUMNS)
    table.columns[0].no_wrap = True
    for each in found:
        marks = ["yes" if field in each.exports else "-" for field in COLUMNS.values()]
        table.add_row(Text(each.name), Text(each.installed or "-"), *marks)
    return table


def _print_one(console: Console, each: Capability) -> None:
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
            table.add_row(Text(key, style="bold"), Text(words))
    console.print(table)
