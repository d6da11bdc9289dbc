"""What a run would send of a dataset: rows, lengths, what its prompts share, and what is left out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from servetop.core.config import WorkloadConfig
from servetop.core.errors import UsageError
from servetop.core.interfaces.dialect import Prompt
from servetop.workload.datasets.catalogue import check_dataset_name, texts_of, trace_of
from servetop.workload.datasets.repeated_prompts import Seen, found_shares
from servetop.workload.datasets.rows import DatasetRow, SkippedRows
from servetop.workload.datasets.text_dataset import TextDataset
from servetop.workload.datasets.traces import RequestTrace
from servetop.workload.prompts.dataset_options import check_dataset_options
from servetop.workload.token_estimate import estimated_tokens

MOST_COMPARED = 20_000
"""Prompts that are held against the ones before them."""
_BLOCK, _PERCENTILES = 16, {"p50": 50, "p90": 90, "p99": 99}


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetPreview:
    """Figures of one pass over a dataset; lengths by `min`, `mean`, `p50`, `p90`, `p99` and `max`, empty if unknown."""

    dataset: str
    rows: int
    remarks: tuple[str, ...]
    """What is left out or malformed, and why."""
    estimated: bool
    """Token counts are estimates, not those of the file."""
    prompt_tokens: dict[str, float] = field(default_factory=dict)
    output_tokens: dict[str, float] = field(default_factory=dict)
    without_output: int = 0
    """Requests whose output length the file does not have, so that `--output-len` applies."""
    turns: dict[str, float] = field(default_factory=dict)
    """Questions of each conversation."""
    shared_prefixes: float | None = None
    """Part of the prompts that an infinite prefix cache finds in earlier ones; None if all are random."""
    block_tokens: int = 0
    """Tokens of a block of a trace that names the blocks of its prompts; else 0."""
    mismatched_blocks: int = 0
    """Rows of it with more or fewer blocks than their prompts have: cut, or filled up with random tokens."""
    duration: float | None = None
    """Seconds from the first arrival to the last; None without times."""
    examples: tuple[DatasetRow, ...] = ()


def preview(workload: WorkloadConfig, *, examples: int) -> DatasetPreview:
    """Read a dataset to its end, leaving out bad rows; UsageError if it has no usable row or no rows at all."""
    check_dataset_name(workload.dataset)
    check_dataset_options(workload)
    trace = trace_of(workload, seed=0)
    source = texts_of(workload) if trace is None else replace(trace, jitter=0.0)
    if source is None:
        raise UsageError(
            f"{workload.dataset} has no rows to show: give a file, or --dataset-name azure-conv or mtbench"
        )
    block_tokens = source.file_format.block_tokens if isinstance(source, RequestTrace) else 0
    skipped, columns, seen = SkippedRows(), _Columns(block_tokens=block_tokens), set[int]()
    for row in _rows(source, skipped):
        columns.add(row, seen=seen, examples=examples)
    if not columns.prompts:
        reasons = "; ".join(skipped.texts()) or "it is empty"
        raise UsageError(f"{source.path} has no usable rows: {reasons}{skipped.proposal}")
    return DatasetPreview(
        dataset=workload.dataset,
        rows=len(columns.prompts),
        remarks=tuple(skipped.texts()),
        estimated=isinstance(source, TextDataset),
        prompt_tokens=_figures(columns.prompts),
        output_tokens=_figures(columns.outputs),
        without_output=columns.without_output,
        turns=_figures(columns.turns),
        shared_prefixes=columns.shared_prefixes,
        block_tokens=block_tokens,
        mismatched_blocks=columns.mismatched,
        duration=columns.until if isinstance(source, RequestTrace) and source.timed else None,
        examples=tuple(columns.examples),
    )


@dataclass(slots=True)
class _Columns:
    """The lengths of the rows so far."""

    block_tokens: int
    """Tokens of a block of a trace whose rows have the identities of their blocks; 0 for other datasets."""
    prompts: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    without_output: int = 0
    turns: list[int] = field(default_factory=list)
    found: float = 0.0
    compared: float = 0.0
    has_blocks: bool = False
    mismatched: int = 0
    until: float = 0.0
    examples: list[DatasetRow] = field(default_factory=list)

    @property
    def shared_prefixes(self) -> float | None:
        """The part of the compared prompts that is in earlier ones; None if all are random."""
        known = self.compared and (self.has_blocks or not self.block_tokens)
        return self.found / self.compared if known else None

    def add(self, row: DatasetRow, *, seen: Seen, examples: int) -> None:
        """Count a row; `seen` holds the beginnings of the prompts before it."""
        first = f"{row.text or ''}{row.turns[0].question}" if row.turns else row.text or ""
        if len(self.prompts) < MOST_COMPARED:
            self._compare(row, first, seen=seen)
        tokens = row.input_tokens or estimated_tokens(first)
        self.prompts.append(tokens)
        answers = [turn.output_tokens for turn in row.turns] if row.turns else [row.output_tokens]
        self.outputs += [length for length in answers if length is not None]
        self.without_output += answers.count(None)
        self.turns += [len(row.turns)] if row.turns else []
        self.until = row.at or 0.0
        if len(self.examples) < examples:
            self.examples.append(replace(row, input_tokens=tokens))

    def _compare(self, row: DatasetRow, text: str, *, seen: Seen) -> None:
        """Count the part of a prompt that is in `seen`."""
        if self.block_tokens:
            self._compare_blocks(row, seen)
        elif text:
            prompt = Prompt(text=text, input_tokens=0, output_tokens=0)
            ((share, length),) = found_shares([prompt], block_size=_BLOCK, seen=seen)
            self.found, self.compared = self.found + share * length, self.compared + length

    def _compare_blocks(self, row: DatasetRow, seen: Seen) -> None:
        """Count the tokens of known blocks; those of a prompt that are in no block are sent as random ones."""
        length = row.input_tokens or 0
        needed = math.ceil(length / self.block_tokens)
        self.has_blocks |= bool(row.blocks)
        self.mismatched += bool(row.blocks) and len(row.blocks) != needed
        random_rest = (-1 - row.line,) if len(row.blocks) < needed else ()
        prompt = Prompt(text="", token_ids=(*row.blocks[:needed], *random_rest), input_tokens=0, output_tokens=0)
        ((share, blocks),) = found_shares([prompt], block_size=1, seen=seen)
        self.found, self.compared = self.found + share * blocks * self.block_tokens, self.compared + length


def _rows(source: TextDataset | RequestTrace, skipped: SkippedRows) -> Iterator[DatasetRow]:
    """One pass; a file that cannot be read to its end is shown as far as it goes; UsageError if that is nowhere."""
    found = False
    try:
        for row in source.rows(skipped):
            found = True
            yield row
    except UsageError as error:
        if not (found or skipped.skipped or skipped.left_out):
            raise
        skipped.bad(str(error))


def _figures(values: Sequence[int]) -> dict[str, float]:
    if not values:
        return {}
    numbers = np.asarray(values, dtype=np.float64)
    middle = {name: float(np.percentile(numbers, percentile)) for name, percentile in _PERCENTILES.items()}
    return {"min": float(numbers.min()), "mean": float(numbers.mean()), **middle, "max": float(numbers.max())}
