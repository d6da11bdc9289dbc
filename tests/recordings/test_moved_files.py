"""A recording that is moved or removed while it is written."""

import shutil
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from servetop.core.events import RequestRecord, RunEnd
from servetop.core.interfaces.run_source import RunHeader
from servetop.core.tick import Tick
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.tick_transaction import TickTransaction

MakeTick = Callable[..., Tick]
MakeRequest = Callable[..., RequestRecord]
END = RunEnd(at=1.0, exit_code=0, reason="")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux names the open files of a process")
def test_writing_continues_in_a_moved_recording(
    tmp_path: Path, header: RunHeader, make_tick: MakeTick, make_request: MakeRequest
) -> None:
    old, new = tmp_path / "old.servetop", tmp_path / "elsewhere" / "new.servetop"
    recorder = Recorder.create(old, header)
    recorder.commit(TickTransaction(tick=make_tick(0), requests=[make_request(0, 0.0)]))
    new.parent.mkdir()
    old.rename(new)
    recorder.commit(TickTransaction(tick=make_tick(1), requests=[make_request(1, 0.25)]))
    with closing(recorder.reader()) as reader:
        assert reader.request_count() == 2
    recorder.close(END)
    assert recorder.path == new
    assert recorder.unrecorded is None
    assert [each.name for each in tmp_path.iterdir()] == ["elsewhere"]
    assert [each.name for each in new.parent.iterdir()] == ["new.servetop"]
    with closing(RecordingReader.open(new)) as reader:
        assert [tick.index for tick in reader.poll().ticks] == [0, 1]
        assert reader.end == END


def test_a_removed_recording_is_reported_and_readable_from_memory(
    tmp_path: Path, header: RunHeader, make_tick: MakeTick, make_request: MakeRequest
) -> None:
    path = tmp_path / "night" / "run.servetop"
    recorder = Recorder.create(path, header)
    recorder.commit(TickTransaction(tick=make_tick(0), requests=[make_request(0, 0.0)]))
    shutil.rmtree(path.parent)
    recorder.commit(TickTransaction(tick=make_tick(1)))
    assert recorder.failing == f"{path} was removed while it was written"
    recorder.close(END)
    assert str(recorder.unrecorded) == f"2 ticks, 1 request not recorded: {path} was removed while it was written"
    with closing(recorder.reader()) as reader:
        assert [tick.index for tick in reader.poll().ticks] == [0, 1]
        assert reader.request_count() == 1
        assert reader.end == END
    assert not path.parent.exists()


def test_the_log_of_a_run_that_reuses_a_removed_name_is_kept(
    tmp_path: Path, header: RunHeader, make_tick: MakeTick
) -> None:
    path = tmp_path / "run.servetop"
    first = Recorder.create(path, header)
    first.commit(TickTransaction(tick=make_tick(0)))
    for each in tmp_path.iterdir():
        each.unlink()
    second = Recorder.create(path, header)
    second.commit(TickTransaction(tick=make_tick(0)))
    first.close(END)
    second.commit(TickTransaction(tick=make_tick(1)))
    second.close(END)
    with closing(RecordingReader.open(path)) as reader:
        assert [tick.index for tick in reader.poll().ticks] == [0, 1]
