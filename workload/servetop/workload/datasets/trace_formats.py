"""The layouts of traces: which column holds what, in which unit."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from servetop.core.units import MS_PER_S
from servetop.workload.datasets.files import value_of
from servetop.workload.datasets.rows import BadRow, DatasetRow

MAX_TOKENS = 10_000_000
"""More in one request is a mistake."""
_MAX_SECONDS = 1e12
_MAX_BLOCK = 1 << 64


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFormat:
    """One kind of trace file."""

    name: str
    time: str
    """Column with the arrival time; a table may do without it."""
    input_tokens: str
    output_tokens: str
    seconds: Callable[[str, object], float]
    """From column name and value; BadRow when it is no time."""
    blocks: str = ""
    """Column with the names of prompt blocks."""
    block_tokens: int = 0
    grid: float = 0.0
    """Seconds between the instants to which upstream rounded the times; arrivals are spread over so much."""

    def row(self, line: int, values: Mapping[str, object]) -> DatasetRow:
        """A row of this layout; its time is as written, not yet since the first row. BadRow when it is none."""
        return DatasetRow(
            line=line,
            at=self.seconds(self.time, value_of(values, self.time)) if self.time in values else None,
            input_tokens=tokens(self.input_tokens, value_of(values, self.input_tokens)),
            output_tokens=tokens(self.output_tokens, value_of(values, self.output_tokens)),
            blocks=_block_names(self.blocks, values.get(self.blocks, ())) if self.blocks else (),
        )


def tokens(column: str, value: object) -> int:
    """A whole number of tokens, 1 or more."""
    amount = _number(value)
    if not (1 <= amount <= MAX_TOKENS and amount == math.floor(amount)):
        raise BadRow(column, "a whole number of tokens, 1 or more", value)
    return int(amount)


def _number(value: object) -> float:
    """NaN for what is no number."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return math.nan
    try:
        return float(value)
    except (ValueError, OverflowError):
        return math.nan


def _seconds(column: str, value: object) -> float:
    at = _number(value)
    if not 0 <= at < _MAX_SECONDS:
        raise BadRow(column, "a time in seconds, 0 or more", value)
    return at


def _milliseconds(column: str, value: object) -> float:
    at = _number(value)
    if not 0 <= at < _MAX_SECONDS:
        raise BadRow(column, "a time in milliseconds, 0 or more", value)
    return at / MS_PER_S


def _date(column: str, value: object) -> float:
    try:
        at = datetime.fromisoformat(value.strip() if isinstance(value, str) else "")
    except ValueError:
        raise BadRow(column, "a date and time, as in 2023-11-16 18:15:46.68", value) from None
    return at.replace(tzinfo=at.tzinfo or UTC).timestamp()


def _block_names(column: str, value: object) -> tuple[int, ...]:
    names = tuple(value) if isinstance(value, Sequence) and not isinstance(value, str) else None
    if names is None or not all(type(each) is int and 0 <= each < _MAX_BLOCK for each in names):
        raise BadRow(column, "a list of whole numbers", value)
    return names


TABLES = (
    TraceFormat(
        name="azure", time="TIMESTAMP", input_tokens="ContextTokens", output_tokens="GeneratedTokens", seconds=_date
    ),
    TraceFormat(
        name="burstgpt",
        time="Timestamp",
        input_tokens="Request tokens",
        output_tokens="Response tokens",
        seconds=_seconds,
        grid=1.0,
    ),
    TraceFormat(
        name="vidur",
        time="arrived_at",
        input_tokens="num_prefill_tokens",
        output_tokens="num_decode_tokens",
        seconds=_seconds,
    ),
    TraceFormat(name="plain", time="arrival_s", input_tokens="input", output_tokens="output", seconds=_seconds),
)
"""Comma-separated layouts; a file's header tells which one it is."""

JSON_LINES = (
    TraceFormat(
        name="mooncake",
        time="timestamp",
        input_tokens="input_length",
        output_tokens="output_length",
        seconds=_milliseconds,
        blocks="hash_ids",
        block_tokens=512,
        grid=3.0,
    ),
    TraceFormat(
        name="timed_trace",
        time="timestamp",
        input_tokens="input_length",
        output_tokens="output_length",
        seconds=_seconds,
        blocks="hash_ids",
        block_tokens=16,
    ),
)
"""JSON lines: the names of their fields are the same, the units are not, so a person says which one it is."""


def format_of(columns: Sequence[str]) -> TraceFormat | None:
    """The table layout that these columns have; None when it is none of them."""
    fits = (each for each in TABLES if each.input_tokens in columns and each.output_tokens in columns)
    return next(fits, None)
