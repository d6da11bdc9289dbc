"""Encodes what a search knew at its decisions: numbers and texts as columns, lists of objects as JSON."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Sequence
from typing import Any

import orjson

from servetop.core.config import from_data, to_data
from servetop.core.errors import UsageError
from servetop.core.interfaces.search_state import SearchState
from servetop.core.text.encodable import encodable_data
from servetop.recordings.format.row_codec import Column, RowValues, column_of, encoded

_LISTS = ("objectives", "answers", "loads")
_HINTS = typing.get_type_hints(SearchState)
_PLAIN = tuple(column_of(name, hint) for name, hint in _HINTS.items() if name not in _LISTS)


class SearchCodec:
    """Codec of table `search_state`; objects in its lists have the fields of `core/interfaces/search_state.py`."""

    columns = (*_PLAIN, *(Column(name, "TEXT", name, str, None) for name in _LISTS))

    def encode(self, event: SearchState) -> tuple[Any, ...]:
        """Return the values of a row; an empty list is NULL."""
        lists = (encodable_data(to_data(getattr(event, name))) for name in _LISTS)
        texts = (orjson.dumps(each, option=orjson.OPT_SERIALIZE_NUMPY).decode() if each else None for each in lists)
        return (*encoded(event, _PLAIN), *texts)

    def decode_all(self, rows: Sequence[RowValues]) -> list[SearchState]:
        """Decode rows; ValueError for damage."""
        return [_decoded(row) for row in rows]


def _decoded(row: RowValues) -> SearchState:
    names = {each.name for each in dataclasses.fields(SearchState)}
    data = {name: value for name, value in row.items() if name in names and value is not None}
    data |= {name: orjson.loads(data[name]) for name in _LISTS if name in data}
    try:
        return from_data(SearchState, {"load": None, **data}, strict=False, where="recorded search")
    except UsageError as error:
        raise ValueError(str(error)) from None


SEARCH_STATES = SearchCodec()
