"""The exported columns of requests as arrays, read in blocks of rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from servetop.analysis.columns.request_columns import STATUSES, TOKEN_SOURCES, RequestColumns
from servetop.analysis.summary.request_metrics import latencies_by_request
from servetop.core.arrays import BoolArray
from servetop.recordings.read.growing_column import GrowingColumn
from servetop.recordings.read.load_requests import Selection
from servetop.recordings.read.load_run import load_stages
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.read.request_blocks import ended_request_blocks
from servetop.reports.export.exported_columns import REQUEST_COLUMNS
from servetop.reports.summary.cooldown import CoolDowns, whole_selection

_OTHERS = {
    "id": "id",
    "stage": "stage",
    "headers_s": "headers_at",
    "cached_tokens": "cached_tokens",
    "chunks": "chunks",
    "error": "error",
    "http_status": "http_status",
    "worker": "worker",
    "replica": "replica",
    "model": "model",
    "conversation": "conversation",
    "turn": "turn",
    "server_queue_s": "server_queue",
    "server_prefill_s": "server_prefill",
    "server_decode_s": "server_decode",
}
"""Exported columns that are columns of the recording which a summary does not need."""
_WHOLE = ("id", "stage", "chunks", "worker", "prompt_tokens", "output_tokens")
"""Integers that are always known."""
_STATUSES = np.array([*map(str, STATUSES)], dtype=object)
_SOURCES = np.array([*map(str, TOKEN_SOURCES), None], dtype=object)
"""The last one is UNKNOWN_SOURCE."""


def request_arrays(reader: RecordingReader) -> dict[str, npt.NDArray[Any]]:
    """Return an array of shape (requests,) for each of REQUEST_COLUMNS, in the order in which the requests ended.

    An unknown number is NaN, so a number that may be unknown is a float; an unknown text is None.
    """
    blocks = request_array_blocks(reader)
    columns = {name: GrowingColumn(values) for name, values in next(blocks).items()}
    for block in blocks:
        for name, values in block.items():
            columns[name].append(values)
    return {name: column.values for name, column in columns.items()}


def request_array_blocks(reader: RecordingReader) -> Iterator[dict[str, npt.NDArray[Any]]]:
    """Yield the arrays of no request, then those of `request_arrays` in blocks of a few thousand requests."""
    reader.refresh()
    stages = load_stages(reader)
    selection = whole_selection(stages, CoolDowns.load(reader, stages))
    for requests in ended_request_blocks(reader, tuple(_OTHERS.values())):
        yield _arrays(requests, selection)


def _arrays(requests: RequestColumns, selection: Selection) -> dict[str, npt.NDArray[Any]]:
    found: dict[str, npt.NDArray[Any]] = {
        **{name: requests.others[source] for name, source in _OTHERS.items()},
        "counted": _selected(requests, selection),
        "status": _STATUSES[requests.status],
        "due_s": requests.due,
        "sent_s": requests.sent,
        "first_token_s": requests.first_token_at,
        "first_output_s": requests.first_output_at,
        "done_s": requests.done_at,
        "prompt_tokens": requests.prompt_tokens,
        "output_tokens": requests.output_tokens,
        "reasoning_tokens": requests.reasoning_tokens,
        "required_tokens": requests.required_tokens,
        "token_source": _SOURCES[requests.token_source],
        **{f"{metric}_s": values for metric, values in latencies_by_request(requests).items()},
    }
    return {each.name: _widened(each.name, found[each.name]) for each in REQUEST_COLUMNS}


def _selected(requests: RequestColumns, selection: Selection) -> BoolArray:
    """Return a mask of the requests in the totals of the run."""
    stages = requests.others["stage"]
    chosen = np.ones(requests.due.size, dtype=bool)
    if selection.start is not None:
        chosen &= requests.due >= selection.start
    for stage, start in selection.excluded:
        chosen &= ~((stages == stage) & (requests.due >= start))
    return chosen


def _widened(name: str, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a column in the type that it has in every recording."""
    if values.dtype.kind in "bO":
        return values
    return values.astype(np.int64 if name in _WHOLE else np.float64)
