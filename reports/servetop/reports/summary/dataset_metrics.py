"""What a run sent: its dataset, how many rows of it, and what random prompts consist of."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from servetop.analysis.prefix_cache.ideal_hits import own_draws
from servetop.analysis.summary.summary_types import DatasetSummary
from servetop.core.config import WorkloadConfig
from servetop.core.config_values.cell_workload import cell_workloads
from servetop.core.events import Note
from servetop.recordings.read.reader import RecordingReader
from servetop.workload.datasets.row_counts import RowCounts
from servetop.workload.prompts.ordinary_tokens import ORDINARY, UNCHECKED


def dataset_summary(reader: RecordingReader) -> DatasetSummary | None:
    """Return the dataset of a run; the numbers of rows are None for prompts that are not rows of a file.

    None for cells of several datasets.
    """
    config = reader.header.config
    workload = config.workload
    if len({(each.dataset, each.dataset_path) for each in cell_workloads(workload, config.stages)}) > 1:
        return None
    notes = reader.notes()
    counts = RowCounts.of_notes(notes)
    of_rows, used = reader.header.imported is None and _has_rows(workload), _rows_used(reader)
    return DatasetSummary(
        name=workload.dataset,
        file=Path(workload.dataset_path).name or None,
        rows_used=min(used, used if counts.in_file is None else counts.in_file) if of_rows else None,
        rows_skipped=counts.skipped if of_rows else None,
        rows_left_out=counts.left_out if of_rows else None,
        random_tokens=reader.header.random_tokens or next(filter(None, map(_older_tokens, notes)), None),
    )


def _older_tokens(note: Note) -> str | None:
    """Return what random prompts of a recording before format 1.12 consist of, by the words of its note."""
    if note.source != "load":
        return None
    if note.text == "random prompts consist of ordinary tokens of the model":
        return ORDINARY
    return UNCHECKED if note.text.startswith("prompts are random token ids from 1,000 to 9,999; whether") else None


def _has_rows(workload: WorkloadConfig) -> bool:
    from servetop.workload.datasets.catalogue import DATASETS, SHIPPED_TRACES, TEXTS, TRACES

    name = workload.dataset
    return name in (*TEXTS, *TRACES, *SHIPPED_TRACES) or name not in DATASETS  # then it is that of a plug-in


def _rows_used(reader: RecordingReader) -> int:
    """The most requests, or conversations, that drew from one prompt stream: each stream begins with the first row."""
    own = own_draws(reader.stages())
    counts = Counter[int]()
    if reader.header.config.workload.conversational:
        for (stage,) in reader.request_rows(("stage",), where="turn = 1"):
            counts[own.get(stage, 0)] += 1
    else:
        for stage, by_status in reader.request_counts().items():
            counts[own.get(stage, 0)] += sum(by_status.values())
    return max(counts.values(), default=0)
