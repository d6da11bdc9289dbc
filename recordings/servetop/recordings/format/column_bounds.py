"""SQL conditions for the valid values of columns, because a damaged or forged file may contain any value."""

from __future__ import annotations

from collections.abc import Iterable

from servetop.recordings.format.merged_codec import MERGED
from servetop.recordings.format.reader_limits import MAX_CHUNK_BYTES
from servetop.recordings.format.request_codec import ENDED, REQUESTS
from servetop.recordings.format.row_codec import Column

MAX_RUN_SECONDS = 10_000_000
"""About four months; a later time is treated as damage."""
MOST_MERGED = 64
"""Rows that one row may stand for; a watch merges those of 10 s."""
_MAX_NUMBER = 1.7e308
"""Limit of all other columns; implausible server metrics are valid here, and checked where they are used."""
_MAX_COUNT = (1 << 63) - 1
"""Limit of a request's integers, such as tokens: the largest integer of SQLite."""
_TIMES = frozenset(
    {
        "at",
        "due",
        "sent",
        "headers_at",
        "first_token_at",
        "last_token_at",
        "done_at",
        "first_output_at",
        "obeyed_at",
        "scrape_start",
        "scrape_end",
        "engine_scrape_start",
        "engine_scrape_end",
        ENDED,
    }
)
_MAY_BE_INFINITE = frozenset({"request_rate"})
NOT_NULL = frozenset({"prompt_tokens", "output_tokens"})
"""Columns that are never NULL, in requests and in ticks."""
_CHUNKS = {
    "chunk_times": "length(chunk_times) % 4 = 0",
    "chunk_tokens": """length(chunk_tokens) = 0 OR ifnull(length(chunk_times), 0) =
        (length(chunk_tokens) - 1) * CASE substr(chunk_tokens, 1, 1) WHEN x'31' THEN 4 ELSE 1 END""",
}
"""Valid sizes in bytes (core/chunk_codec.py): four per time; one for the width, then one or four per count."""
_REQUEST_COLUMNS = {column.name: column for column in REQUESTS.columns}


def valid_row_condition(columns: Iterable[Column]) -> str:
    """Return an SQL condition that the numbers of a row have valid types and magnitudes; most may be NULL."""
    conditions = (_condition(column.name, column.sql_type) for column in columns)
    return " AND ".join(filter(None, conditions)) or "1"


def valid_request_condition(names: Iterable[str]) -> str:
    """Return an SQL condition for columns of table `request` and the expression ENDED; others are not checked."""
    types = ((name, "REAL" if name == ENDED else _type_of(name)) for name in names)
    return " AND ".join(filter(None, (_condition(name, sql_type) for name, sql_type in types))) or "1"


def largest_request_value(name: str) -> float:
    """Return the largest valid magnitude of a number in a column of table `request`."""
    return _largest(name, _type_of(name))


def _type_of(name: str) -> str:
    column = _REQUEST_COLUMNS.get(name)
    return "" if column is None else column.sql_type


def _condition(name: str, sql_type: str) -> str:
    if name in _CHUNKS:
        kind_and_size = f"typeof({name}) = 'blob' AND length({name}) <= {MAX_CHUNK_BYTES}"
        return f"({name} IS NULL OR {kind_and_size} AND ({_CHUNKS[name]}))"
    if sql_type not in ("REAL", "INTEGER") or name == "seq":
        return ""
    if name == MERGED:
        return f"ifnull({name}, 1) BETWEEN 1 AND {MOST_MERGED}"
    if name in _MAY_BE_INFINITE:
        return f"ifnull({name}, 0) >= 0 AND typeof({name}) IN ('real', 'null')"
    largest = _largest(name, sql_type)
    smallest = 0 if name == "number" else -largest
    if name in NOT_NULL:
        return f"typeof({name}) = 'integer' AND {name} BETWEEN {smallest!r} AND {largest!r}"
    return f"ifnull({name}, 0) BETWEEN {smallest!r} AND {largest!r}"


def _largest(name: str, sql_type: str) -> float:
    if sql_type == "INTEGER" and name in _REQUEST_COLUMNS:
        return _MAX_COUNT
    return MAX_RUN_SECONDS if name in _TIMES else 4 * MAX_RUN_SECONDS if name == "number" else _MAX_NUMBER
