"""Formats of trace files: the columns and their units."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from servetop.core.units import MS_PER_S
from servetop.workload.datasets.files import value_of
from servetop.workload.datasets.rows import BadRow, DatasetRow, LeftOut


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFormat:
    """A format of trace files."""

    name: str
    time: str
    """Column with the arrival time; optional in tables."""
    input_tokens: str
    output_tokens: str
    seconds: Callable[[str, object], float]
    """Converts a value of the time column (its name, the value) to seconds; BadRow for anything else."""
    blocks: str = ""
    """Column with the identities of prompt blocks."""
    block_tokens: int = 0
    block_size: str = ""
    """Column with the tokens of a block, where each row has it; it must be `block_tokens` in all of them."""
    session: str = ""
    """Column with the number of the session that a request belongs to; optional in rows."""
    grid: float = 0.0
    """Resolution of the recorded times in seconds; arrivals are spread over it by default."""
    without_output: str = ""
    """What a row with 0 output tokens is, in files whose owners leave it out; empty: a malformed row."""

    def row(self, line: int, values: Mapping[str, object]) -> DatasetRow:
        """Parse a row; its time is as written, not relative to the first row.

        BadRow for a malformed row, LeftOut for one without output that the owners of the format do not send either.
        """
        if self.without_output and _number(values.get(self.output_tokens)) == 0:
            raise LeftOut(self.without_output)
        if self.block_size and values.get(self.block_size) != self.block_tokens:
            raise BadRow(self.block_size, f"{self.block_tokens}, as in the first row", values.get(self.block_size))
        needed = bool(self.blocks)  # rows of JSON lack it one by one, those of a table all together
        return DatasetRow(
            line=line,
            input_tokens=tokens(self.input_tokens, value_of(values, self.input_tokens)),
            output_tokens=tokens(self.output_tokens, value_of(values, self.output_tokens)),
            at=self.seconds(self.time, value_of(values, self.time)) if needed or self.time in values else None,
            blocks=_block_identities(self.blocks, values.get(self.blocks, ())) if self.blocks else (),
            session=_session(self.session, values.get(self.session)) if self.session else None,
        )


MAX_TOKENS = 10_000_000
"""Upper bound of plausible token counts."""
_MAX_SECONDS = 1e12
_ZONE = re.compile(r" (?:UTC|GMT|([+-]\d[\d:]+))$")
"""What precedes or names the time zone of a date; without one it is UTC."""
_MAX_BLOCK = 1 << 64


def tokens(column: str, value: object) -> int:
    """Parse a number of tokens; BadRow unless it is an integer of at least 1."""
    amount = _number(value)
    if not (1 <= amount <= MAX_TOKENS and amount == math.floor(amount)):
        raise BadRow(column, "a whole number of tokens, 1 or more", value)
    return int(amount)


def _number(value: object) -> float:
    """Return the number; NaN for anything else."""
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
    text = _ZONE.sub(r"\1", value.strip() if isinstance(value, str) else "")
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise BadRow(column, "a date and time, as in 2023-11-16 18:15:46.68", value) from None
    return at.replace(tzinfo=at.tzinfo or UTC).timestamp()


def _block_identities(column: str, value: object) -> tuple[int, ...]:
    names = tuple(value) if isinstance(value, Sequence) and not isinstance(value, str) else None
    if names is None or not all(type(each) is int and 0 <= each < _MAX_BLOCK for each in names):
        raise BadRow(column, "a list of whole numbers", value)
    return names


def _session(column: str, value: object) -> int | None:
    if value is None or (type(value) is int and 0 <= value < _MAX_BLOCK):
        return value
    raise BadRow(column, "a whole number", value)


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
        without_output="0 response tokens, a request that failed",
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
"""Comma-separated formats; the header line of a file selects one."""

_TIMED_TRACE = TraceFormat(
    name="timed_trace",
    time="timestamp",
    input_tokens="input_length",
    output_tokens="output_length",
    seconds=_seconds,
    blocks="hash_ids",
    block_tokens=16,
)
_MOONCAKE = replace(_TIMED_TRACE, name="mooncake", seconds=_milliseconds, block_tokens=512, grid=3.0)
SHAPE = replace(_MOONCAKE, name="shape", block_tokens=0, block_size="block_size", session="session_id", grid=0.0)
"""What `servetop shape` writes: Mooncake's fields, the size of a block, and the session."""
MAX_BLOCK_TOKENS = 4096
JSON_LINES = (_MOONCAKE, _TIMED_TRACE)
"""JSON Lines formats: fields have the same names but different units, so `--dataset-name` selects one."""


def shape_format(values: object) -> TraceFormat | None:
    """The format of a trace that `servetop shape` wrote, by one of its rows; None for a row of anything else."""
    if not isinstance(values, Mapping) or SHAPE.input_tokens not in values:
        return None
    tokens_of_block = values.get(SHAPE.block_size)
    if type(tokens_of_block) is not int or not 1 <= tokens_of_block <= MAX_BLOCK_TOKENS:
        return None
    return replace(SHAPE, block_tokens=tokens_of_block)


def format_of(columns: Sequence[str]) -> TraceFormat | None:
    """The table format with these columns; None when there is none. The case of the time column does not matter."""
    fits = (each for each in TABLES if each.input_tokens in columns and each.output_tokens in columns)
    found = next(fits, None)
    if found is None:
        return None
    times = (name for name in columns if name.lower() == found.time.lower())
    return replace(found, time=found.time if found.time in columns else next(times, found.time))
