"""A read-only dashboard shows runs and recordings, and changes neither."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from servetop.cli.options.output_options import DisplayOptions
from servetop.cli.viewing.display_options import dashboard_options
from servetop.cli.viewing.read_only import ReadOnlyRun, ReadOnlyStore
from servetop.core.errors import RecordingError
from servetop.core.events import Action
from servetop.recordings.library.folder_store import FolderStore
from servetop.recordings.read.reader import RecordingReader
from tests.hostile_recording import write_hostile_recording


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    write_hostile_recording(tmp_path / "run.servetop", "words")
    return tmp_path / "run.servetop"


def test_a_read_only_run_is_shown_and_accepts_no_command(recording: Path) -> None:
    with contextlib.closing(RecordingReader.open(recording)) as reader:
        run = ReadOnlyRun(reader)
        assert (run.name, run.header, run.is_live()) == (reader.name, reader.header, False)
        assert [note.text for note in run.poll().notes] == ["words"]
        assert list(run.requests(0.0, 10.0)) == []
        for action in Action:
            with pytest.raises(RecordingError, match="read-only"):
                run.send(action, value=1.0)
        reader.refresh()
        assert not reader.poll().commands


def test_a_read_only_store_opens_but_does_not_rename_or_delete(recording: Path) -> None:
    store = FolderStore(recording.parent)
    shown = ReadOnlyStore(store)
    assert (shown.location, list(shown.paths())) == (str(recording.parent), [recording])
    assert shown.preview(recording, bins=8).info.label == "words"
    with pytest.raises(RecordingError, match="read-only"):
        shown.rename(recording, "other")
    with pytest.raises(RecordingError, match="read-only"):
        shown.delete(recording)
    with pytest.raises(RecordingError, match="read-only"):
        shown.open(recording).send(Action.STOP)
    store.close()
    assert recording.exists()


def test_a_read_only_dashboard_does_not_save_the_theme(tmp_path: Path) -> None:
    assert dashboard_options(DisplayOptions(), FolderStore(tmp_path), read_only=True).remember_theme is None
