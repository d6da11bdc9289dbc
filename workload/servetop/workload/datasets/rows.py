"""Rows of a dataset, and the handling of malformed ones."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from servetop.core.errors import UsageError
from servetop.core.text.counted import counted, was_were
from servetop.core.text.sanitize import sanitize_line

COLUMN_NAME = re.compile(r"[\w.-]+( [\w.-]+)?")
"""A name of a column, unlike a sentence: one word, or two."""
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
    session: int | None = None
    """Number of the session whose requests follow each other; None: unknown."""


class BadRow(ValueError):
    """A malformed row: the column, the expected value, and the value found."""

    def __init__(self, column: str, expected: str, found: object) -> None:
        shown = repr(found)
        shown = shown if len(shown) <= 60 else shown[:59] + "…"
        super().__init__(f"column {column!r}: expected {expected}, found {shown}")


class MalformedRow(BadRow):
    """A row that is wrong as a whole, described in one phrase."""

    def __init__(self, problem: str) -> None:
        ValueError.__init__(self, problem)


class MissingColumn(MalformedRow):
    """A row without the column that is wanted; names those that it has."""

    def __init__(self, column: str, present: Collection[object], *, chosen: bool = False) -> None:
        """`chosen`: the column is that of `--dataset-column`, for which the first name of one is proposed."""
        names = [str(name) for name in present if COLUMN_NAME.fullmatch(str(name))] if chosen else []
        self.choice = next(iter(names), "")
        shown = sanitize_line(", ".join(str(name) for name in present)) or "none"
        shown = shown if len(shown) <= 100 else shown[:99] + "…"
        no_table = ", which names no column: is the file a dataset?" if chosen and present and not names else ""
        super().__init__(f"no column {column!r}: it has {shown}{no_table}")


class LeftOut(Exception):
    """A well-formed row that the owners of its format do not send either, with the reason."""


ROWS_SKIPPED, ROWS_LEFT_OUT, ROWS_IN_FILE = "rows_skipped", "rows_left_out", "rows_in_file"


@dataclass(frozen=True, slots=True)
class Remark:
    """A note on a dataset, and what it counts: see `fact`, `subject` and `count` of `Note`."""

    text: str
    fact: str | None = None
    subject: str | None = None
    count: int | None = None


@dataclass(slots=True)
class SkippedRows:
    """Counts of dataset rows, requests and conversations that were left out or shortened."""

    skipped: int = 0
    """Malformed rows."""
    first_skipped: str = ""
    """Description of the first malformed row."""
    column: str = ""
    """A column that the file has, where the first malformed row lacks that of `--dataset-column`."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Numbers of well-formed rows that are not sent, by reason."""
    rows_in_pass: int | None = None
    """Usable rows of a file of texts, once it has been read to its end."""
    last_position: int = -1
    """Highest position in a prompt stream of a text that was sent."""
    repetition_noted: bool = False
    """A note says that texts were sent again."""
    clipped: int = 0
    """Requests shortened to the context of the model."""
    broken: int = 0
    """Conversations that ended early because a turn failed."""
    cut: int = 0
    """Conversations that ended because their stage ended."""
    too_long: int = 0
    """Conversations that ended because the next turn would exceed the context of the model."""
    file: tuple[int, ...] | None = None
    """What distinguishes the file as it was first opened from a later one of its name."""
    changed: str = ""
    """The name of a file that was another one when it was opened again, until a note says so."""
    change_noted: bool = False

    def opens(self, path: Path) -> bool:
        """Note that a file is read from its beginning, as in each cell of a sweep; return whether it has changed."""
        try:
            found = path.stat()
        except OSError:
            return False  # an error of reading it follows
        now = (found.st_ino, found.st_size, found.st_mtime_ns)
        changed = self.file is not None and now != self.file
        if changed and not self.change_noted:
            self.changed = str(path)
        self.file = now
        return changed

    def bad(self, problem: str) -> None:
        """Count a malformed row, or the part of a file that cannot be read; the first one is described in the note."""
        self.first_skipped = self.first_skipped if self.skipped else problem
        self.skipped += 1

    @property
    def proposal(self) -> str:
        """What to do about a file without usable rows, after a colon: empty, or the column to choose."""
        return f": choose with --dataset-column {shlex.quote(self.column)}" if self.column else ""

    def texts(self) -> list[str]:
        """Return the texts of `remarks`."""
        return [each.text for each in self.remarks()]

    def remarks(self) -> list[Remark]:
        """Notes on the counts since the last call."""
        notes = []
        if self.skipped:
            bad = f"{counted(self.skipped, 'bad row')} of the dataset {was_were(self.skipped)} skipped"
            notes.append(Remark(f"{bad}; the first: {self.first_skipped}", ROWS_SKIPPED, count=self.skipped))
        for reason, count in self.left_out.items():
            text = f"{counted(count, 'row')} of the dataset {was_were(count)} left out: {reason}"
            notes.append(Remark(text, ROWS_LEFT_OUT, reason, count))
        if self.rows_in_pass is not None and self.last_position >= self.rows_in_pass and not self.repetition_noted:
            self.repetition_noted = True
            sent = "the one prompt" if self.rows_in_pass == 1 else f"all {self.rows_in_pass:,} prompts"
            text = f"{sent} of the dataset {was_were(self.rows_in_pass)} sent, then again: a prefix cache finds "
            notes.append(Remark(f"{text}repeated prompts", ROWS_IN_FILE, count=self.rows_in_pass))
        if self.clipped:
            clipped = f"{counted(self.clipped, 'request')} {was_were(self.clipped)} clipped to the model's context"
            notes.append(Remark(clipped))
        conversations = {
            "ended early because a turn failed": self.broken,
            f"{was_were(self.cut)} cut short by the end of the load": self.cut,
            "ended early because the next turn would exceed the model's context": self.too_long,
        }
        notes += [Remark(f"{counted(count, 'conversation')} {what}") for what, count in conversations.items() if count]
        if self.changed:
            text = "changed while the load ran: later requests are those of its new content"
            notes.append(Remark(f"{self.changed} {text}"))
            self.changed, self.change_noted = "", True
        self.left_out.clear()
        self.skipped = self.clipped = self.broken = self.cut = self.too_long = 0
        return notes


_MOST_KEPT = 1000


@dataclass(slots=True)
class KeptRows:
    """The first rows of the first pass, for a load whose file disappears."""

    rows: list[DatasetRow] = field(default_factory=list)
    complete: bool = False
    """The first pass has ended."""
    noted: bool = False

    def _keep(self, row: DatasetRow) -> DatasetRow:
        if len(self.rows) < _MOST_KEPT and not self.complete:
            self.rows.append(row)
        return row

    def one_pass(
        self,
        rows: Callable[[SkippedRows], Iterator[DatasetRow]],
        *,
        path: Path,
        counting: SkippedRows,
        first: SkippedRows,
    ) -> Iterator[DatasetRow]:
        """Yield one pass over a file as far as it can be read; the kept rows if it has none any more.

        `counting` counts the bad rows of this pass. `first` counts the loss of the file, once, and remembers the file,
        so that one that changed in between is named. UsageError for a file of which no row was ever read.
        """
        found, problem = 0, f"{path} has no usable rows any more"
        first.opens(path)
        try:
            for row in rows(counting):
                found += 1
                yield self._keep(row)
        except UsageError as error:
            if not (found or self.rows):
                raise
            problem = str(error)
            if found:
                counting.bad(problem)
        if self.rows and not found:
            if not self.noted:
                first.bad(f"{problem}: the first {self._repeated()} repeated")
            self.noted = True
            yield from self.rows
        self.complete = True

    def _repeated(self) -> str:
        return "row is" if len(self.rows) == 1 else f"{len(self.rows):,} rows are"


def good_rows(
    raws: Iterator[tuple[int, _Raw | BadRow]],
    parse: Callable[[int, _Raw], DatasetRow],
    *,
    name: str,
    skipped: SkippedRows | None,
) -> Iterator[DatasetRow]:
    """The rows that parse; bad ones are counted in `skipped`, or raise a UsageError with line and row without it."""
    found, last = 0, 0
    for number, (line, raw) in enumerate(raws, start=1):
        place = f"line {line}, row {number}" if line == last else f"line {line}"
        last = line
        try:
            row = parse(line, _well_formed(raw))
        except BadRow as wrong:
            if skipped is None:
                raise _refused(wrong, name=name, place=place, first=not found) from None
            if isinstance(wrong, MissingColumn) and not skipped.skipped:
                skipped.column = wrong.choice
            skipped.bad(f"{name}, {place}, {wrong}")
        except LeftOut as reason:
            if skipped is not None:
                skipped.left_out[str(reason)] += 1
        else:
            found += 1
            yield row


def _well_formed(raw: _Raw | BadRow) -> _Raw:
    if isinstance(raw, BadRow):
        raise raw
    return raw


def _refused(wrong: BadRow, *, name: str, place: str, first: bool) -> UsageError:
    """Return the error for a bad row; a column that the first row lacks was probably never there."""
    if first and isinstance(wrong, MissingColumn) and wrong.choice:
        return UsageError(f"{name}: {wrong}: choose with --dataset-column {shlex.quote(wrong.choice)}")
    return UsageError(f"{name}, {place}, {wrong}: fix it, or add --skip-bad-rows")


def valid_text(column: str, text: str) -> str:
    """The text; BadRow for one that cannot be sent: with half a character, or bytes in another encoding than UTF-8."""
    try:
        text.isascii() or text.encode()
    except UnicodeEncodeError as error:
        near = text[max(0, error.start - 12) : error.end + 12]
        raise BadRow(column, "text in UTF-8 (no half of a surrogate pair, no Latin-1)", near) from None
    return text
