"""One row of a dataset, and what is done with a row that is none."""

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
    """How long its answer was; None is "the dataset does not say"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetRow:
    """One request; None is "the dataset does not say"."""

    line: int
    """In its file, from 1; of a table without lines, the row."""
    at: float | None = None
    """Seconds since the first row."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    text: str | None = None
    """The prompt."""
    turns: tuple[Turn, ...] = ()
    """Of a conversation, what is asked in it; its `text` is then what the system says."""
    blocks: tuple[int, ...] = ()
    """Names of the prompt's blocks of tokens: blocks of one name hold the same tokens."""


class BadRow(ValueError):
    """A row that cannot be a request: which column, what was expected there, what is there."""

    def __init__(self, column: str, expected: str, found: object) -> None:
        shown = repr(found)
        shown = shown if len(shown) <= 60 else shown[:59] + "…"
        super().__init__(f"column {column!r}: expected {expected}, found {shown}")


@dataclass(slots=True)
class SkippedRows:
    """What became of a run's data on its way to the engine."""

    skipped: int = 0
    """Rows that were left out because they made no sense."""
    first_skipped: str = ""
    """The first of them, in words."""
    clipped: int = 0
    """Requests that were shortened to what the model takes."""
    broken: int = 0
    """Conversations that a turn ended which did not end well."""
    cut: int = 0
    """Conversations that ended with their stage."""
    too_long: int = 0
    """Conversations whose next turn would have been more than the model takes."""

    def remarks(self) -> list[str]:
        """What there is to say, once: asked again it says what came since."""
        said = []
        if self.skipped:
            said.append(f"{self.skipped:,} bad rows of the dataset were skipped; the first: {self.first_skipped}")
        if self.clipped:
            said.append(f"{self.clipped:,} requests were clipped to the model's longest context")
        talks = {
            "ended early, with a turn that did not end well": self.broken,
            "were cut short by the end of the load": self.cut,
            "ended early, because the next turn would be beyond the model's longest context": self.too_long,
        }
        said += [f"{count:,} conversations {what}" for what, count in talks.items() if count]
        self.skipped = self.clipped = self.broken = self.cut = self.too_long = 0
        return said


def good_rows(
    raws: Iterator[tuple[int, _Raw]], parse: Callable[[int, _Raw], DatasetRow], *, name: str, tally: SkippedRows | None
) -> Iterator[DatasetRow]:
    """The rows that parse; bad ones are counted in the tally, or, without one, a UsageError that names the line."""
    for line, raw in raws:
        try:
            row = parse(line, raw)
        except BadRow as wrong:
            words = f"{name}, line {line}, {wrong}"
            if tally is None:
                raise UsageError(f"{words}: mend it, or add --skip-bad-rows") from None
            if not tally.skipped:
                tally.first_skipped = words
            tally.skipped += 1
        else:
            yield row
