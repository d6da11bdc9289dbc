"""A file is written as a whole or not at all; devices are not replaced."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from servetop.core.errors import RecordingError, ServetopError, UsageError
from servetop.reports.export.whole_file import refuse_target, write_whole


def test_a_file_that_cannot_be_replaced_leaves_nothing_behind(tmp_path: Path) -> None:
    locked = tmp_path / "page.html"
    locked.write_text("before", encoding="utf-8")

    def parts() -> Iterator[str]:
        yield "text"
        raise RecordingError("the disk failed")

    with pytest.raises(RecordingError):
        write_whole(locked, parts())
    assert locked.read_text(encoding="utf-8") == "before"
    assert [each.name for each in tmp_path.iterdir()] == ["page.html"]


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(ServetopError, match=r"cannot write .*page\.html: no such file or directory"):
        write_whole(tmp_path / "no" / "page.html", ["text"])


def test_a_named_pipe_is_written_in_place(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    received: list[str] = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_text(encoding="utf-8")))
    reader.start()
    write_whole(pipe, ["a", "b"])
    reader.join()
    assert received == ["ab"]
    assert pipe.is_fifo()


def test_a_file_that_is_read_is_refused_under_another_name_too(tmp_path: Path) -> None:
    source, other = tmp_path / "gateway.jsonl", tmp_path / "other.jsonl"
    source.write_text("{}\n", encoding="utf-8")
    other.symlink_to(source)
    for target in (source, other, tmp_path / "." / "gateway.jsonl"):
        with pytest.raises(UsageError, match=r"jsonl is a file that is read"):
            refuse_target(target, instead="a name", sources=["-", source])
    refuse_target(tmp_path / "new.jsonl", instead="a name", sources=["-", source])


def test_folders_and_recordings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is a folder: give a name"):
        refuse_target(tmp_path, instead="a name")
    with pytest.raises(UsageError, match="is a recording by its suffix"):
        refuse_target(tmp_path / "x.servetop", instead="a name")
