"""Rows of a dataset, and the handling of malformed ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from servetop.core.errors import UsageError

_Raw = TypeVar("_Raw")


@dataclass(frozen=True, slots=True)
class Turn:
    """One question of a conversation."""

    question: str
    output_tokens: int | None = None
    """Length of its answer in the dataset; None: unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetRow:
    """One request of a dataset; None: the dataset has no such value."""

    line: int
    """Line number in the file, from 1; the row number where there are no lines."""
    at: float | None = None
    """Seconds since the first row."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    text: str | None = None
    """The prompt."""
    turns: tuple[Turn, ...] = ()
    """The questions of a conversation, whose `text` is then the system prompt."""
    blocks: tuple[int, ...] = ()
    """Identities of the prompt's blocks of tokens: equal identities mean equal tokens."""


class BadRow(ValueError):
    """A malformed row: the column, the expected value, and the value found."""

    def __init__(self, column: str, expected: str, found: object) -> None:
        shown = repr(found)
        shown = shown if len(shown) <= 60 else shown[:59] + "…"
        super().__init__(f"column {column!r}: expected {expected}, found {shown}")


@dataclass(slots=True)
class SkippedRows:
    """Counts of dataset rows, requests and conversations that were left out or shortened."""

    skipped: int = 0
    """Malformed rows."""
    first_skipped: str = ""
    """Description of the first malformed row."""
    clipped: int = 0
    """Requests shortened to the context of the model."""
    broken: int = 0
    """Conversations that ended early because a turn failed."""
    cut: int = 0
    """Conversations that ended because their stage ended."""
    too_long: int = 0
    """Conversations that ended because the next turn would exceed the context of the model."""

    def remarks(self) -> list[str]:
        """Notes on the counts since the last call."""
        notes = []
        if self.skipped:
            notes.append(f"{self.skipped:,} bad rows of the dataset were skipped; the first: {self.first_skipped}")
        if self.clipped:
            notes.append(f"{self.clipped:,} requests were clipped to the model's context")
        conversations = {
            "ended early because a turn failed": self.broken,
            "were cut short by the end of the load": self.cut,
            "ended early because the next turn would exceed the model's context": self.too_long,
        }
        notes += [f"{count:,} conversations {what}" for what, count in conversations.items() if count]
        self.skipped = self.clipped = self.broken = self.cut = self.too_long = 0
        return notes


def good_rows(
    raws: Iterator[tuple[int, _Raw]],
    parse: Callable[[int, _Raw], DatasetRow],
    *,
    name: str,
    skipped: SkippedRows | None,
) -> Iterator[DatasetRow]:
    """The rows that parse; bad ones are counted in `skipped`, or raise a UsageError with the line without it."""
    for line, raw in raws:
        try:
            row = parse(line, raw)
        except BadRow as wrong:
            problem = f"{name}, line {line}, {wrong}"
            if skipped is None:
                raise UsageError(f"{problem}: fix it, or add --skip-bad-rows") from None
            if not skipped.skipped:
                skipped.first_skipped = problem
            skipped.skipped += 1
        else:
            yield row
