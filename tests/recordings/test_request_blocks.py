"""Requests in blocks of columns are those of the rows read one by one."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from servetop.analysis.columns.request_columns import STATUSES, TOKEN_SOURCES, UNKNOWN_SOURCE, RequestColumns
from servetop.core.arrays import FloatArray
from servetop.core.events import RequestRecord, TokenSource
from servetop.core.interfaces.run_source import RunHeader
from servetop.recordings.format.schema import REQUEST
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.read.request_blocks import BLOCK, ended_request_blocks
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.tick_transaction import TickTransaction
from tests.recordings.rows import change
from tests.recordings.test_load_requests import golden

OTHERS = ("id", "stage", "worker", "http_status", "error", "headers_at", "cached_tokens", "chunks")


@contextlib.contextmanager
def opened(path: Path) -> Iterator[RecordingReader]:
    with contextlib.closing(RecordingReader.open(path)) as reader:
        yield reader


def column(blocks: list[RequestColumns], name: str) -> list[Any]:
    """Return the values of all blocks, None for what is unknown."""
    parts = [each.others[name] if name in each.others else getattr(each, name) for each in blocks]
    return [None if each != each else each for part in parts for each in part.tolist()]


@pytest.mark.parametrize("name", ["vllm", "whitepaper", "dies"])
def test_requests_are_those_of_the_rows_whether_or_not_a_column_has_one_value(tmp_path: Path, name: str) -> None:
    path = golden(name, tmp_path)
    change(path, "UPDATE request SET error = 'odd', status = 'error' WHERE id = 3")
    with opened(path) as reader:
        found, rows = list(ended_request_blocks(reader, OTHERS)), list(reader.stream(REQUEST))
    assert column(found, "chunks") == [each.chunk_times.size for each in rows]
    for each in ("error", "worker", "http_status", "headers_at", "cached_tokens", "due", "sent", "first_output_at",
                 "reasoning_tokens", "required_tokens", "output_tokens"):  # fmt: skip
        assert column(found, each) == [getattr(row, each) for row in rows], each
    assert [STATUSES[code] for code in column(found, "status")] == [each.status for each in rows]
    assert [source_of(code) for code in column(found, "token_source")] == [each.token_source for each in rows]


def test_counts_that_all_requests_have_are_those_of_each_row(tmp_path: Path) -> None:
    path = golden("vllm", tmp_path)
    equal = f"chunk_times = x'{'01000000' * 3}', chunk_tokens = NULL"
    change(path, f"UPDATE request SET prompt_tokens = 5, output_tokens = 3, {equal}")
    with opened(path) as reader:
        found, count = list(ended_request_blocks(reader, OTHERS)), reader.request_count()
    assert [column(found, each) for each in ("prompt_tokens", "output_tokens", "chunks", "sized")] == [
        [5] * count, [3] * count, [3] * count, [True] * count,
    ]  # fmt: skip


def source_of(code: int) -> TokenSource | None:
    return None if code == UNKNOWN_SOURCE else TOKEN_SOURCES[code]


def test_a_block_has_a_limited_number_of_requests(
    tmp_path: Path, header: RunHeader, make_request: Callable[..., RequestRecord]
) -> None:
    recorder = Recorder.create(tmp_path / "run.servetop", header)
    recorder.commit(TickTransaction(requests=[make_request(each, each / 100) for each in range(2 * BLOCK + 3)]))
    with opened(recorder.path) as reader:
        blocks = list(ended_request_blocks(reader, ("id",)))
    assert [each.due.size for each in blocks] == [0, BLOCK, BLOCK, 3]
    assert column(blocks, "id") == list(range(2 * BLOCK + 3))


INVALID = (
    "prompt_tokens = 1.5",
    "output_tokens = NULL",
    "output_tokens = -9223372036854775808",
    "due = x'00'",
    "due = 1e12",
    "sent = 'soon'",
    "done_at = -1e9",
    "worker = 1e300",
    "http_status = 'fine'",
    "headers_at = 9e999",
    "chunk_times = x'0000'",
    "chunk_times = 'text'",
    "chunk_tokens = x'310000'",
)


@pytest.mark.parametrize("value", INVALID)
@pytest.mark.parametrize("rows", ["id = 3", "true"])
def test_rows_with_an_invalid_value_are_omitted_and_recorded_as_damage(tmp_path: Path, value: str, rows: str) -> None:
    path = golden("vllm", tmp_path)
    change(path, f"UPDATE request SET {value} WHERE {rows}")
    with opened(path) as reader:
        total = reader.request_count()
        found = column(list(ended_request_blocks(reader, OTHERS)), "id")
        damage = reader.damage
        kept = [each.id for each in reader.stream(REQUEST)]
    assert found == kept
    assert len(found) == (total - 1 if rows == "id = 3" else 0)
    invalid = "1 row of table request is" if rows == "id = 3" else f"{total:,} rows of table request are"
    assert damage is not None
    assert f"{invalid} invalid" in damage


@pytest.mark.parametrize("value", ["status = 'odd'", "due = NULL", "id = 2.5", "id = NULL"])
def test_rows_without_a_known_status_due_time_or_id_are_omitted(tmp_path: Path, value: str) -> None:
    path = golden("vllm", tmp_path)
    change(path, f"UPDATE request SET {value} WHERE id = 3")
    with opened(path) as reader:
        total, found = reader.request_count(), column(list(ended_request_blocks(reader, OTHERS)), "id")
    assert len(found) == total - 1
    assert 3 not in found


def test_columns_of_a_growing_recording_are_read_row_by_row(tmp_path: Path) -> None:
    path = golden("vllm", tmp_path)
    change(path, "UPDATE run SET end_at = NULL", "UPDATE request SET worker = 4")
    with opened(path) as reader:
        blocks = ended_request_blocks(reader, OTHERS)
        empty = next(blocks)
        change(path, "UPDATE request SET worker = id % 3")  # as a run that adds rows
        found = [empty, *blocks]
    assert column(found, "worker") == [each % 3 for each in column(found, "id")]


def test_a_request_of_unknown_times_is_no_number(
    tmp_path: Path, header: RunHeader, make_request: Callable[..., RequestRecord]
) -> None:
    recorder = Recorder.create(tmp_path / "run.servetop", header)
    recorder.commit(TickTransaction(requests=[make_request(1, 0.5), make_request(2, 0.6, tokens_at=(), sent=None)]))
    with opened(recorder.path) as reader:
        _, block = ended_request_blocks(reader, ())
    sent: FloatArray = block.sent
    assert [math.isnan(each) for each in sent] == [False, True]
    assert np.isnan(block.first_token_at).tolist() == [False, True]
