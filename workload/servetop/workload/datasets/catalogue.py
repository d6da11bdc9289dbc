"""Datasets by name (`--dataset-name`), and the dataset of a workload."""

from __future__ import annotations

import difflib
from pathlib import Path

from servetop.core.config import CONVERSATIONS, RANDOM, WorkloadConfig
from servetop.core.errors import UsageError
from servetop.core.system.plug_ins import plug_ins
from servetop.core.text.sanitize import sanitize_line
from servetop.workload.datasets.conversation_rows import MTBENCH, turns_row
from servetop.workload.datasets.files import shipped
from servetop.workload.datasets.plug_in_texts import GROUP, plug_in_texts
from servetop.workload.datasets.records import holds_json, records
from servetop.workload.datasets.tables import header_of
from servetop.workload.datasets.text_dataset import TextDataset
from servetop.workload.datasets.texts import conversation_row, text_row
from servetop.workload.datasets.trace_formats import JSON_LINES, TABLES, TraceFormat, format_of, shape_format
from servetop.workload.datasets.traces import RequestTrace

CORPORA = {"sonnet": "sonnet.txt.gz", "shakespeare": "shakespeare.txt.gz"}
SHIPPED_TRACES = {"azure-conv": "azure_2023_conv.csv.gz", "azure-code": "azure_2023_code.csv.gz"}
TRACES = ("trace", *(each.name for each in (*TABLES, *JSON_LINES)))
SHIPPED_CONVERSATIONS = "mtbench"
FILES_OF_ROWS = ("custom", "jsonl", "csv", "parquet", "hf")
"""Datasets with a column of prompts; the content of the file decides how it is read."""
TEXTS = ("sharegpt", *FILES_OF_ROWS, *CONVERSATIONS)
DATASETS = (*RANDOM, *CORPORA, *TEXTS, *SHIPPED_TRACES, *TRACES)
PROMPT_COLUMN = "prompt"


def check_dataset_name(name: str) -> None:
    """Raise UsageError, with the nearest name, for an unknown dataset."""
    if name in DATASETS:
        return
    known = (*DATASETS, *added_datasets())
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
        raise UsageError(f"--dataset-name: unknown {name!r}: {hint}")


def has_texts(name: str) -> bool:
    """Whether a dataset, servetop's or a plug-in's, has prompts of its own; False for an unknown name."""
    return name in TEXTS or (name not in DATASETS and name in added_datasets())


def added_datasets() -> tuple[str, ...]:
    """Return the datasets that plug-ins add."""
    return tuple(name for name in plug_ins(GROUP, "dataset") if name not in DATASETS)


def trace_of(workload: WorkloadConfig, *, seed: int) -> RequestTrace | None:
    """Return the trace of a workload; None when its dataset is not a trace. UsageError for a file in another format."""
    name = workload.dataset
    if name in SHIPPED_TRACES:
        return _table_trace(shipped(SHIPPED_TRACES[name]), TABLES[0], workload, seed)
    if name not in TRACES:
        return None
    path = _path(workload)
    file_format = next((each for each in JSON_LINES if each.name == name), None)
    if name == "trace" and holds_json(path):
        file_format = _shape(path)
    if file_format is not None:
        jitter = file_format.grid if workload.jitter is None else workload.jitter
        return RequestTrace(path=path, file_format=file_format, timed=True, jitter=jitter, seed=seed)
    return _table_trace(path, _table_format(name, path), workload, seed)


def _shape(path: Path) -> TraceFormat:
    """Return the format of a trace that `servetop shape` wrote; UsageError for other JSON, whose unit is unknown."""
    found = next((shape_format(values) for _, values in records(path)), None)
    if found is None:
        raise UsageError(_OTHER_JSON.format(path))
    return found


_OTHER_JSON = "{} holds JSON lines: give --dataset-name mooncake (milliseconds) or timed_trace (seconds)"


def _table_format(name: str, path: Path) -> TraceFormat:
    if holds_json(path):
        raise UsageError(_OTHER_JSON.format(path))
    columns = header_of(path)
    found = format_of(columns)
    wanted = [each for each in TABLES if name in ("trace", each.name)]
    if found is None or found.name not in [each.name for each in wanted]:
        expected = " or ".join(f"{each.time},{each.input_tokens},{each.output_tokens}" for each in wanted)
        shown = sanitize_line(", ".join(columns))[:100]
        raise UsageError(f"{path}, line 1: expected the columns {expected}, found {shown}")
    return found


def _table_trace(path: Path, file_format: TraceFormat, workload: WorkloadConfig, seed: int) -> RequestTrace:
    jitter = file_format.grid if workload.jitter is None else workload.jitter
    return RequestTrace(
        path=path, file_format=file_format, timed=file_format.time in header_of(path), jitter=jitter, seed=seed
    )


def texts_of(workload: WorkloadConfig) -> TextDataset | None:
    """Return the texts of a workload; None when its dataset has none."""
    name = workload.dataset
    if name not in DATASETS:
        return plug_in_texts(workload)
    if name not in TEXTS:
        return None
    if name in CONVERSATIONS:
        return _conversations(workload)
    path = _path(workload, folder=name == "hf")
    if name == "sharegpt":
        return TextDataset(path=path, parse=conversation_row)
    column = workload.dataset_column or PROMPT_COLUMN
    return TextDataset(path=path, parse=lambda line, values: text_row(line, values, column=column))


def _conversations(workload: WorkloadConfig) -> TextDataset:
    ours = workload.dataset == SHIPPED_CONVERSATIONS and not workload.dataset_path
    return TextDataset(
        path=shipped(MTBENCH) if ours else _path(workload),
        parse=lambda line, item: turns_row(line, item, column=workload.dataset_column),
    )


def _path(workload: WorkloadConfig, *, folder: bool = False) -> Path:
    what = "folder" if folder else "file"
    if not workload.dataset_path:
        raise UsageError(f"--dataset-name {workload.dataset} reads a {what}: give --dataset-path")
    path = Path(workload.dataset_path).expanduser()
    if not (path.exists() if folder else path.is_file()):
        raise UsageError(f"{path} is not a {what}: check --dataset-path")
    return path
