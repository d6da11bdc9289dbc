"""Encodes events as rows of typed columns and decodes them, field by field."""

from __future__ import annotations

import dataclasses
import operator
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, Protocol, TypeVar, overload

from servetop.core.events import Command, LogLine, Note, StageChange
from servetop.core.interfaces.replica_change import ReplicaChange
from servetop.core.interfaces.request_in_flight import RequestInFlight
from servetop.core.interfaces.skipped_cell import SkippedCell
from servetop.core.text.encodable import encodable

_Event = TypeVar("_Event")
RowValues = Mapping[str, Any]
"""Values of a row by name of the columns that the file has."""

_INT64_MAX = (1 << 63) - 1


class RowBlock(Sequence[RowValues]):
    """Some rows of one table as SQLite returns them, of which each is a mapping when it is asked for."""

    def __init__(self, names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
        """`names` are those of the first columns of `rows`; further values are ignored."""
        self._names, self._rows = names, rows

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, at: int) -> RowValues: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[RowValues]: ...

    def __getitem__(self, at: int | slice) -> RowValues | Sequence[RowValues]:
        if isinstance(at, slice):
            return RowBlock(self._names, self._rows[at])
        return dict(zip(self._names, self._rows[at], strict=False))

    def __iter__(self) -> Iterator[RowValues]:
        return (dict(zip(self._names, row, strict=False)) for row in self._rows)

    @property
    def columns(self) -> Mapping[str, tuple[Any, ...]]:
        """The values of all rows by name of the column; empty without rows."""
        return dict(zip(self._names, zip(*self._rows, strict=True), strict=False))

    def columns_with(self, absent: frozenset[str]) -> Mapping[str, tuple[Any, ...]]:
        """Return the values of all rows by name of the column, None for those of `absent` that an older file lacks."""
        nothing = (None,) * len(self._rows)
        return {**dict.fromkeys(absent, nothing), **self.columns}


@dataclass(frozen=True, slots=True)
class Column:
    """The column of one field of an event."""

    name: str
    sql_type: str
    field: str
    """Name of the event's attribute."""
    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any] | None
    """Converts SQLite's value; None if no conversion is needed."""
    required: bool = False
    """Whether NULL is invalid."""

    def accepts(self, value_type: type) -> bool:
        """Whether a value that SQLite returns with this type is valid."""
        if value_type is type(None):
            return not self.required
        return value_type is _SQL_TYPES[self.sql_type]


_SQL_TYPES: Mapping[str, type] = {"REAL": float, "INTEGER": int, "TEXT": str, "BLOB": bytes}


class EventCodec(Protocol[_Event]):
    """Converts the events of one table to rows and back."""

    @property
    def columns(self) -> Sequence[Column]:
        """The columns, in the order of the values from `encode`."""
        ...

    def encode(self, event: _Event) -> tuple[Any, ...]:
        """Return the values of a row."""
        ...

    def decode_all(self, rows: Sequence[RowValues]) -> list[_Event]:
        """Decode rows; fields without a column keep their defaults. ValueError, TypeError or KeyError for damage."""
        ...


def _text(value: Any) -> str:
    """Replace lone surrogates, from log lines that are not UTF-8, which SQLite cannot store."""
    return encodable(str(value))


def _int64(value: Any) -> int:
    number = int(value)
    return number if -_INT64_MAX <= number <= _INT64_MAX else max(-_INT64_MAX, min(number, _INT64_MAX))


def _real(value: Any) -> float:
    """Replace negative zero, which SQLite does not preserve."""
    return float(value) + 0.0


_SCALARS: dict[Any, tuple[str, Callable[[Any], Any], Callable[[Any], Any] | None]] = {
    float: ("REAL", _real, None),
    int: ("INTEGER", _int64, None),
    bool: ("INTEGER", int, bool),
    str: ("TEXT", _text, None),
    bytes: ("BLOB", bytes, None),
}


def column_of(name: str, hint: Any, *, field: str | None = None) -> Column:
    """Return the column of a field of type float, int, bool, str, bytes or a string enumeration, possibly optional."""
    required = not isinstance(hint, types.UnionType)
    if isinstance(hint, types.UnionType):
        hint = next(each for each in typing.get_args(hint) if each is not type(None))
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return Column(name, "TEXT", field or name, str, hint, required)
    sql_type, encode, decode = _SCALARS[hint]
    return Column(name, sql_type, field or name, encode, decode, required)


def columns_of(kind: type[Any], *, renamed: Mapping[str, str] | None = None, prefix: str = "") -> tuple[Column, ...]:
    """Return a column for every field of a flat dataclass; `renamed` maps field names that are SQL keywords."""
    hints = typing.get_type_hints(kind)
    names = renamed or {}
    return tuple(
        column_of(prefix + names.get(each.name, each.name), hints[each.name], field=each.name)
        for each in dataclasses.fields(kind)
    )


def encoded(event: Any, columns: Sequence[Column]) -> list[Any]:
    """Encode some of an event's fields; None stays None."""
    return [None if (value := getattr(event, each.field)) is None else each.encode(value) for each in columns]


class EventReader(Generic[_Event]):
    """Reads events of one type from rows; fields without a column keep their defaults. Needs at least two columns."""

    def __init__(self, kind: type[_Event], columns: Sequence[Column]) -> None:
        self._kind = kind
        self._columns = columns
        self._values = operator.itemgetter(*(column.name for column in columns))
        self._fields = tuple(column.field for column in columns)
        self._conversions = tuple((column.field, column.decode) for column in columns if column.decode is not None)

    def __call__(self, row: RowValues, **others: object) -> _Event:
        """Return the event of a row, with `others` for fields that are not among the columns."""
        try:
            values = self._values(row)
        except KeyError:
            return self._event({each.field: row[each.name] for each in self._columns if each.name in row}, others)
        return self.of_values(values, **others)

    def of_values(self, values: Sequence[Any], **others: object) -> _Event:
        """Return the event of the values of all columns, in their order."""
        return self._event(dict(zip(self._fields, values, strict=True)), others)

    def _event(self, fields: dict[str, Any], others: Mapping[str, object]) -> _Event:
        for field, decode in self._conversions:
            if fields.get(field) is not None:
                fields[field] = decode(fields[field])
        return self._kind(**fields, **others)


class CountReader(Generic[_Event]):
    """An `EventReader` of events with many fields that have their defaults in most rows, such as counts of nothing."""

    def __init__(self, kind: type[_Event], columns: Sequence[Column]) -> None:
        self._read, self._kind = EventReader(kind, columns), kind
        self._columns = columns
        self._values = operator.itemgetter(*(column.name for column in columns))
        self._defaults = {each.name: each.default for each in dataclasses.fields(typing.cast("Any", kind))}
        self._last: tuple[Any, dict[str, Any]] | None = None
        """Values of a row, and the fields that differ from their defaults."""

    def __call__(self, row: RowValues, **others: object) -> _Event:
        """Return the event of a row, with `others` for fields that are not among the columns."""
        try:
            values = self._values(row)
        except KeyError:  # a file of an older version
            return self._read(row, **others)
        return self.of_values(values, **others)

    def of_values(self, values: tuple[Any, ...], **others: object) -> _Event:
        """Return the event of the values of all columns, in their order."""
        last = self._last
        if last is None or last[0] != values:
            pairs = zip(self._columns, values, strict=True)
            fields = {each.field: value for each, value in pairs if value != self._defaults[each.field]}
            last = self._last = values, fields
        return self._kind(**last[1], **others)


class RepeatedReader(Generic[_Event]):
    """An `EventReader` that returns one object for following rows with the same values, which must be immutable."""

    def __init__(self, kind: type[_Event], columns: Sequence[Column]) -> None:
        self._read = EventReader(kind, columns)
        self._values = operator.itemgetter(*(column.name for column in columns))
        self._last: tuple[Any, _Event] | None = None

    def __call__(self, row: RowValues) -> _Event:
        """Return the event of a row."""
        try:
            values = self._values(row)
        except KeyError:  # a file of an older version
            return self._read(row)
        return self.of_values(values)

    def of_values(self, values: tuple[Any, ...]) -> _Event:
        """Return the event of the values of all columns, in their order."""
        last = self._last
        if last is None or last[0] != values:
            last = self._last = values, self._read.of_values(values)
        return last[1]


class FlatCodec(Generic[_Event]):
    """Codec of an event type whose fields are all numbers and strings."""

    def __init__(self, kind: type[_Event], *, renamed: Mapping[str, str] | None = None) -> None:
        self.columns: tuple[Column, ...] = columns_of(kind, renamed=renamed)
        self._own, self._read = self.columns, EventReader(kind, self.columns)
        self._needed = {each.name for each in self.columns}
        self._absent = absent_columns(kind, self.columns)

    def encode(self, event: _Event) -> tuple[Any, ...]:
        """Return the values of a row."""
        return tuple(encoded(event, self.columns))

    def decode_all(self, rows: Sequence[RowValues]) -> list[_Event]:
        """Decode several rows."""
        if isinstance(rows, RowBlock) and self._needed <= (columns := rows.columns_with(self._absent)).keys():
            return [self._read.of_values(values) for values in together(columns, self._own)]
        return [self._read(row) for row in rows]


def absent_columns(kind: type[Any], columns: Sequence[Column]) -> frozenset[str]:
    """Return the names of the columns whose field is None unless it is given: files of older versions may lack them."""
    unknown = {each.name for each in dataclasses.fields(kind) if each.default is None}
    return frozenset(each.name for each in columns if each.field in unknown)


def together(columns: Mapping[str, Sequence[Any]], wanted: Sequence[Column]) -> Iterator[tuple[Any, ...]]:
    """Yield the values of some of the columns for each row."""
    return zip(*(columns[each.name] for each in wanted), strict=True)


REPLICA_CHANGES = FlatCodec(ReplicaChange)
REQUESTS_IN_FLIGHT = FlatCodec(RequestInFlight)
STAGES = FlatCodec(StageChange, renamed={"index": "number"})
SKIPPED_CELLS = FlatCodec(SkippedCell)
COMMANDS = FlatCodec(Command, renamed={"id": "seq", "applied_at": "obeyed_at"})
NOTES = FlatCodec(Note)
LOG_LINES = FlatCodec(LogLine)
