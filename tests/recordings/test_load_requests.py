"""The requests of a comparison are those of the summary."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

import numpy as np
import pytest

from servetop.recordings.read.load_requests import Selection, load_requests, load_stage_requests
from servetop.recordings.read.reader import RecordingReader
from tests.house.source_tree import TOP
from tests.recordings.rows import change

COLUMNS = ("due", "sent", "first_token_at", "done_at", "prompt_tokens", "output_tokens", "status", "first_tokens",
           "sized")  # fmt: skip


def golden(name: str, folder: Path) -> Path:
    return Path(shutil.copy(TOP / "tests" / "golden" / f"{name}.servetop", folder))


@pytest.mark.parametrize("name", ["vllm", "whitepaper", "dies"])
def test_columns_equal_those_of_the_summary(tmp_path: Path, name: str) -> None:
    with contextlib.closing(RecordingReader.open(golden(name, tmp_path))) as reader:
        plain, whole = load_stage_requests(reader), load_requests(reader, Selection())
    order = np.lexsort((plain.ids, plain.columns.due))
    found = plain.columns
    by_due = np.argsort(whole.due, kind="stable")
    for column in COLUMNS:
        expected = getattr(whole, column)[by_due]
        assert np.array_equal(np.sort(getattr(found, column)), np.sort(expected), equal_nan=True), column
    assert found.due[order].tolist() == whole.due[by_due].tolist()


def test_rows_of_a_stage_are_in_order_of_due_time(tmp_path: Path) -> None:
    with contextlib.closing(RecordingReader.open(golden("whitepaper", tmp_path))) as reader:
        plain = load_stage_requests(reader)
    stages = sorted(set(plain.stages.tolist()))
    due = [plain.columns.part(plain.of_stage(int(stage))).due for stage in stages]
    assert all((np.diff(each) >= 0).all() for each in due)
    assert sum(each.size for each in due) == plain.ids.size


@pytest.mark.parametrize(("width", "counts"), [("1", "030102"), ("4", "030000000100000002000000")])
def test_the_tokens_of_chunks_are_read_in_both_widths(tmp_path: Path, width: str, counts: str) -> None:
    path = golden("vllm", tmp_path)
    blob = width.encode().hex() + counts
    change(
        path,
        f"UPDATE request SET chunk_times = x'{'00' * 12}', chunk_tokens = x'{blob}', output_tokens = 6 WHERE id = 3",
        f"UPDATE request SET chunk_times = x'{'00' * 12}', chunk_tokens = NULL, output_tokens = 9 WHERE id = 4",
    )
    with contextlib.closing(RecordingReader.open(path)) as reader:
        plain = load_stage_requests(reader)
    three, four = (int(np.flatnonzero(plain.ids == number)[0]) for number in (3, 4))
    assert (plain.columns.first_tokens[three], bool(plain.columns.sized[three])) == (3.0, True)
    assert (plain.columns.first_tokens[four], bool(plain.columns.sized[four])) == (1.0, False)


def test_rows_with_an_invalid_status_or_number_are_omitted(tmp_path: Path) -> None:
    path = golden("vllm", tmp_path)
    change(
        path,
        "UPDATE request SET status = 'odd' WHERE id = 3",
        "UPDATE request SET due = 'soon' WHERE id = 4",
        "UPDATE request SET id = NULL WHERE id = 5",
    )
    with contextlib.closing(RecordingReader.open(path)) as reader:
        count, plain = reader.request_count(), load_stage_requests(reader)
    assert plain.ids.size == count - 3
    assert not set(plain.ids.tolist()) & {3, 4, 5}
