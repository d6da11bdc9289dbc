"""Loads the data files of the corpus, and reads them as `servetop dataset` and a run do."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from servetop.core.config import WorkloadConfig
from servetop.core.errors import UsageError
from servetop.workload.datasets.catalogue import texts_of, trace_of
from servetop.workload.datasets.rows import DatasetRow, SkippedRows
from servetop.workload.datasets.text_dataset import TextDataset
from servetop.workload.datasets.traces import RequestTrace
from servetop.workload.prompts.dataset_options import likely_names
from servetop.workload.prompts.preview import preview

DATA = Path(__file__).parent / "data"
_LONG = "<long>"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataCase:
    """One data file and its right reading (README.md)."""

    name: str
    body: bytes
    facts: dict[str, Any]

    def expected(self, key: str) -> Any:
        """A value of the reading, its long texts written out; None where it has none."""
        return _written_out(self.facts.get(key), self.facts)

    @property
    def file_body(self) -> bytes:
        """The bytes of the file, its long text written out."""
        return self.body.replace(_LONG.encode(), _long_text(self.facts).encode())

    def workload(self, path: Path, likely: tuple[str, ...]) -> WorkloadConfig:
        """The options that read the file at `path`: those of the case, else the likeliest dataset."""
        name = self.facts.get("dataset") or likely[0]
        return WorkloadConfig(dataset=name, dataset_path=str(path), dataset_column=self.facts.get("column", ""))


@dataclass(slots=True, kw_only=True)
class DataReading:
    """What servetop reads from a data file."""

    names: tuple[str, ...] = ()
    rows: list[DatasetRow] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    bad: int = 0
    first_bad: str = ""
    broken: str = ""
    """Why the file cannot be read to its end."""

    def column(self, key: str) -> list[Any]:
        """Return the values under `key` in the reading of a case, one for each row."""
        return [_VALUES[key](row) for row in self.rows]


_VALUES: dict[str, Any] = {
    "texts": lambda row: row.text,
    "system": lambda row: row.text,
    "outputs": lambda row: row.output_tokens,
    "turns": lambda row: [turn.question for turn in row.turns],
    "lengths": lambda row: [row.input_tokens, row.output_tokens],
    "times": lambda row: None if row.at is None else round(row.at, 6),
    "blocks": lambda row: list(row.blocks),
}
COLUMNS = tuple(_VALUES)
"""The keys of a reading that hold one value for each row."""


def load_data() -> list[DataCase]:
    """Return all data files, by name."""
    return [
        DataCase(
            name=path.stem,
            body=path.with_suffix(".data").read_bytes(),
            facts=json.loads(path.read_text(encoding="utf-8")),
        )
        for path in sorted(DATA.glob("*.json"))
    ]


def read_data(case: DataCase, path: Path) -> DataReading:
    """Read the file at `path`, bad rows skipped and counted; UsageError if it is of no kind that can be a dataset."""
    reading, skipped = DataReading(names=likely_names(path)), SkippedRows()
    try:
        reading.rows.extend(_source(case.workload(path, reading.names)).rows(skipped))
    except UsageError as error:
        reading.broken = str(error)
    reading.left_out, reading.bad, reading.first_bad = skipped.left_out, skipped.skipped, skipped.first_skipped
    return reading


def read_strictly(case: DataCase, path: Path) -> list[DatasetRow]:
    """The rows of the file at `path`; UsageError for the first bad row, and for a file without rows."""
    workload = case.workload(path, likely_names(path))
    rows = list(_source(workload).rows())
    preview(workload, examples=0)
    return rows


def _source(workload: WorkloadConfig) -> TextDataset | RequestTrace:
    trace = trace_of(workload, seed=0)
    source = texts_of(workload) if trace is None else replace(trace, jitter=0.0)
    assert source is not None, workload.dataset
    return source


def _long_text(facts: dict[str, Any]) -> str:
    return str(facts.get("fill", "x")) * int(facts.get("long", 0)) if "long" in facts else _LONG


def _written_out(value: Any, facts: dict[str, Any]) -> Any:
    if isinstance(value, list):
        return [_written_out(each, facts) for each in value]
    return value.replace(_LONG, _long_text(facts)) if isinstance(value, str) else value
