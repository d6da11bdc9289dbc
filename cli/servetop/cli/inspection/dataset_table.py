"""`servetop dataset`: what a run would send of a dataset, as text or as JSON."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.table import Table

from servetop.cli.options.tool_options import DatasetOptions
from servetop.cli.tables import out_tables
from servetop.core.config import WorkloadConfig
from servetop.core.errors import ExitCode
from servetop.core.text import formats
from servetop.core.text.counted import counted
from servetop.reports.tables import cell, light_table, titled
from servetop.run import console
from servetop.workload.datasets.catalogue import DATASETS, has_texts
from servetop.workload.datasets.rows import DatasetRow
from servetop.workload.prompts.dataset_options import likely_names
from servetop.workload.prompts.preview import MOST_COMPARED, DatasetPreview, preview

_FIGURES = ("min", "mean", "p50", "p90", "p99", "max")
_MOST_CHARS = 60


def print_dataset(options: DatasetOptions) -> int:
    """Print the preview of a file, or of a dataset by name; UsageError if it has nothing to send."""
    workload, others = _workload(options)
    found = preview(workload, examples=options.rows)
    if options.as_json:
        console.out_json(_data(found, others))
        return ExitCode.OK
    console.out(*_lines(found, others, workload))
    out_tables(_lengths(found))
    if found.examples:
        out_tables(titled("First rows", _examples(found.examples)))
    return ExitCode.OK


def _workload(options: DatasetOptions) -> tuple[WorkloadConfig, tuple[str, ...]]:
    """Return the workload of the file, and the other datasets that it may be."""
    path, name = options.path, options.dataset_name
    if not name and not Path(path).exists() and (path in DATASETS or has_texts(path)):
        return WorkloadConfig(dataset=path, dataset_column=options.dataset_column), ()
    names = (name,) if name else likely_names(Path(path).expanduser())
    return WorkloadConfig(dataset=names[0], dataset_path=path, dataset_column=options.dataset_column), names[1:]


def _data(found: DatasetPreview, others: tuple[str, ...]) -> dict[str, Any]:
    data = dataclasses.asdict(found)
    data["examples"] = [
        {name: value for name, value in row.items() if value not in (None, (), [])} for row in data["examples"]
    ]
    return {**data, "other_names": list(others)}


def _lines(found: DatasetPreview, others: tuple[str, ...], workload: WorkloadConfig) -> Iterator[str]:
    alike = f" (it may also be {' or '.join(others)}: choose with --dataset-name)" if others else ""
    yield f"dataset          {found.dataset}{alike}"
    yield f"rows             {found.rows:,}"
    for remark in found.remarks:
        yield f"not sent         {remark}"
    if found.duration is not None:
        rate = f", {(found.rows - 1) / found.duration:.4g} req/s" if found.duration else ""
        yield f"times            {formats.clock(found.duration)} from first to last{rate}"
    if found.shared_prefixes is None:
        yield "shared prefixes  none: prompts are random tokens"
    else:
        first = f" of the first {MOST_COMPARED:,}" if found.rows > MOST_COMPARED else ""
        yield f"shared prefixes  {formats.percent(found.shared_prefixes)} of the prompts{first} are as in earlier ones"
    if found.mismatched_blocks:
        rows = f"in {found.mismatched_blocks:,} of {found.rows:,} rows the blocks of {found.block_tokens} tokens"
        yield f"blocks           {rows} are not as many as the prompt has: it is cut, or filled up at random"
    if found.without_output:
        requests = counted(found.without_output, "request")
        have = "has" if found.without_output == 1 else "have"
        yield f"output lengths   {requests} {have} none in the file: --output-len applies"
    words = [] if not workload.dataset_path else ["--dataset-path", workload.dataset_path]
    words += ["--dataset-column", workload.dataset_column] if workload.dataset_column else []
    yield f"to send it       servetop --dataset-name {shlex.join((found.dataset, *words))}"


def _lengths(found: DatasetPreview) -> Table:
    table = light_table("", *_FIGURES)
    kind = "estimated tokens" if found.estimated else "tokens"
    rows: Mapping[str, Mapping[str, float]] = {
        f"prompt, {kind}": found.prompt_tokens,
        f"output, {kind}": found.output_tokens,
        "turns": found.turns,
    }
    for label, figures in rows.items():
        if figures:
            table.add_row(label, *(formats.exact(round(figures[name])) for name in _FIGURES))
    return table


def _examples(rows: tuple[DatasetRow, ...]) -> Table:
    table = light_table("line", "prompt", "output", "text")
    table.columns[-1].justify = "left"
    for row in rows:
        text = row.turns[0].question if row.turns else row.text or ""
        outputs = row.turns[0].output_tokens if row.turns else row.output_tokens
        shown = text if len(text) <= _MOST_CHARS else f"{text[: _MOST_CHARS - 1]}…"
        table.add_row(str(row.line), formats.exact(row.input_tokens), formats.exact(outputs), cell(shown))
    return table
