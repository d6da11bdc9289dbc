"""Recorded searches in virtual time: their recording is that of a live one, and a copy is the file at that moment."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from servetop.recordings.read.reader import RecordingReader
from tests.judgement.recorded_search import Cut, record_search
from tests.judgement.searched_servers import draw_case

TICK = 41
"""With requests that ended in it, and with the requests in flight."""


def ticks_of(path: Path) -> list[int]:
    with contextlib.closing(RecordingReader.open(path)) as reader:
        return [tick.index for tick in reader.poll().ticks]


def test_a_copy_ends_with_the_transaction_of_its_tick_or_before_it(tmp_path: Path) -> None:
    shares = (None, 0.0, 0.3, 0.9)
    cuts = {tmp_path / f"{share}.servetop": Cut(tick=TICK, within=share) for share in shares}
    record_search(tmp_path / "whole.servetop", draw_case("closed loop", 21), seed=1, budget=60.0, cuts=cuts)
    found = {cut.within: ticks_of(path)[-1] for path, cut in cuts.items()}
    assert found == {None: TICK, 0.0: TICK - 1, 0.3: TICK - 1, 0.9: TICK - 1}


@pytest.mark.parametrize("kind", ["closed loop", "wide lengths"])
def test_a_recorded_search_ends_within_its_budget_and_has_every_request_once(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "whole.servetop"
    record_search(path, draw_case(kind, 21), seed=1, budget=120.0, cuts={})
    with contextlib.closing(RecordingReader.open(path)) as reader:
        ids = [request.id for request in reader.requests(0.0, 1000.0)]
        stages = [stage.index for stage in reader.stages()]
        assert reader.damage is None
    assert len(set(ids)) == len(ids) >= 5
    assert stages == list(range(len(stages)))
    ticks = ticks_of(path)
    assert ticks == list(range(len(ticks)))
    assert 60 < len(ticks) < 4 * (120 + 60)
