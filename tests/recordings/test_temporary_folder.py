"""Temporary folders of processes that were killed are removed, and only those."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from servetop.recordings.library.temporary_folder import make_temporary_folder

PREFIX = "servetop-sample-"
CODE = (
    "import sys; from servetop.recordings.library.temporary_folder import make_temporary_folder; "
    f"print(make_temporary_folder({PREFIX!r}), flush=True); sys.stdin.read()"
)


@contextlib.contextmanager
def owner(temporary: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A process with a folder, and the folder; it is killed at the end."""
    with subprocess.Popen(
        [sys.executable, "-c", CODE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(temporary)},
    ) as process:
        try:
            assert process.stdout is not None
            yield process, Path(process.stdout.readline().strip())
        finally:
            process.kill()
            process.wait()


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_the_folder_of_a_killed_process_is_removed_and_that_of_a_live_one_stays(temporary: Path) -> None:
    with owner(temporary) as (_, alive), owner(temporary) as (process, dead):
        (dead / "sample.servetop").write_bytes(b"unpacked")
        own = make_temporary_folder(PREFIX)
        assert {alive, dead, own} == set(temporary.iterdir())
        process.kill()
        process.wait()
        later = make_temporary_folder(PREFIX)
        assert {alive, own, later} == set(temporary.iterdir())


def test_other_folders_files_and_links_stay(temporary: Path) -> None:
    with owner(temporary) as (_, dead):
        assert dead.is_dir()
    other, unlocked, file, link = (
        temporary / f"{name}x" for name in ("else-", PREFIX, f"{PREFIX}file", f"{PREFIX}link")
    )
    dead.rename(other)
    unlocked.mkdir()
    file.touch()
    link.symlink_to(other)
    made = make_temporary_folder(PREFIX)
    assert {other, unlocked, file, link, made} == set(temporary.iterdir())
    assert (other / "lock").is_file()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder to another user")
def test_a_folder_of_another_user_stays(temporary: Path) -> None:
    with owner(temporary) as (_, dead):
        assert dead.is_dir()
    os.chown(dead, 65_534, 65_534)
    make_temporary_folder(PREFIX)
    assert dead.is_dir()


def test_a_process_may_have_several_folders(temporary: Path) -> None:
    first, second = make_temporary_folder(PREFIX), make_temporary_folder(PREFIX)
    assert {first, second} == set(temporary.iterdir())
