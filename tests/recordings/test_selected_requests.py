"""One scan for several selections gives each the requests that are read for it alone."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from servetop.analysis.columns.request_columns import PER_REQUEST, RequestColumns
from servetop.core.events import RequestRecord, RequestStatus
from servetop.core.interfaces.run_source import RunHeader
from servetop.recordings.read import load_requests as loading
from servetop.recordings.read.load_requests import Selection, load_requests
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.read.selected_requests import MOST_KEPT, SelectedRequests
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.tick_transaction import TickTransaction
from tests.recordings.rows import change

STAGES = 4
WHOLE = Selection(start=1.0, excluded=((1, 3.5), (3, -np.inf)))
"""Without a warm-up, the cool-down of stage 1, and a stage that does not count."""
PARTS = tuple(
    each for stage in range(STAGES) for each in (
        Selection(stage=stage, excluded=((1, 3.5),) if stage == 1 else ()),
        Selection(stage=stage, start=1.5 * stage + 0.25, until=1.5 * stage + 1.0),
    )
)  # fmt: skip
MakeRequest = Callable[..., RequestRecord]


@pytest.fixture
def path(tmp_path: Path, header: RunHeader, make_request: MakeRequest, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A recording of 400 requests of four stages, of which those around a change of the stage end in any order."""
    monkeypatch.setattr(loading, "BLOCK", 37)
    generator = np.random.default_rng(3)
    due = np.sort(generator.uniform(0, 6, 400))
    requests = [random_request(make_request, number, float(each), generator) for number, each in enumerate(due)]
    requests.sort(key=lambda each: each.due + generator.uniform(0, 0.4))
    recorder = Recorder.create(tmp_path / "run.servetop", header)
    recorder.commit(TickTransaction(requests=requests))
    change(recorder.path, "UPDATE request SET stage = NULL WHERE id IN (7, 200)")
    return recorder.path


def random_request(make_request: MakeRequest, number: int, due: float, generator: np.random.Generator) -> RequestRecord:
    size = int(generator.integers(0, 9))
    status = RequestStatus.OK if size and generator.random() < 0.9 else RequestStatus.ERROR
    return make_request(
        number, due, stage=int(due // 1.5), tokens_at=np.cumsum(generator.integers(1, 30, size) / 100).tolist(),
        chunk_tokens=generator.integers(1, 4, size).tolist(), status=status, prompt_tokens=1 << int(due * 5),
        reasoning_tokens=2 if number % 3 == 0 else None, turn=number % 5,
    )  # fmt: skip


@contextlib.contextmanager
def opened(path: Path) -> Iterator[RecordingReader]:
    with contextlib.closing(RecordingReader.open(path)) as reader:
        yield reader


def assert_equal(found: RequestColumns, expected: RequestColumns) -> None:
    for name in PER_REQUEST:
        values, wanted = getattr(found, name), getattr(expected, name)
        assert values.dtype == wanted.dtype, name
        assert np.array_equal(values, wanted, equal_nan=True), name
    for name in expected.others:
        assert np.array_equal(found.others[name], expected.others[name], equal_nan=True), name
    assert found.itl.values.tolist() == expected.itl.values.tolist()
    assert found.itl.weights.tolist() == expected.itl.weights.tolist()
    assert found.tokens_by_second.tolist() == expected.tokens_by_second.tolist()


@pytest.mark.parametrize("most", [MOST_KEPT, 100, 0])
def test_every_selection_has_the_requests_that_are_read_for_it_alone(path: Path, most: int) -> None:
    with opened(path) as reader:
        selected = SelectedRequests(reader, (WHOLE, *PARTS), others=("turn",), most=most)
        for selection in (WHOLE, *PARTS):
            found, expected = selected.of(selection), load_requests(reader, selection, others=("stage", "turn"))
            assert expected.due.size > 5
            assert_equal(found, expected)


def test_a_part_that_is_asked_for_first_is_right_although_it_is_not_kept(path: Path) -> None:
    with opened(path) as reader:
        selected = SelectedRequests(reader, (WHOLE, *PARTS), most=0)
        assert_equal(selected.of(PARTS[2]), load_requests(reader, PARTS[2]))
        assert_equal(selected.of(WHOLE), load_requests(reader, WHOLE))


def test_all_known_selections_are_read_in_one_scan_unless_they_take_too_much_memory(path: Path) -> None:
    with opened(path) as reader, opened(path) as other:
        together, alone = SelectedRequests(reader, (WHOLE, *PARTS)), SelectedRequests(other, (WHOLE, *PARTS), most=0)
        sizes = [each.of(WHOLE).due.size for each in (together, alone)]
        change(path, "DELETE FROM request")
        assert (together.of(PARTS[2]).due.size > 50, alone.of(PARTS[2]).due.size) == (True, 0)
        assert [each.of(WHOLE).due.size for each in (together, alone)] == sizes


def test_a_selection_that_was_not_foreseen_is_read_by_itself(path: Path) -> None:
    with opened(path) as reader:
        selected, other = SelectedRequests(reader, (WHOLE,)), Selection(stage=2, until=4.0)
        selected.of(WHOLE)
        assert_equal(selected.of(other), load_requests(reader, other))


def test_gaps_that_are_merged_while_reading_are_complete(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("servetop.recordings.read.selected_requests._PENDING_GAPS", 5)
    with opened(path) as reader:
        selected = SelectedRequests(reader, (WHOLE, *PARTS))
        for selection in (WHOLE, PARTS[2]):
            assert_equal(selected.of(selection), load_requests(reader, selection))
