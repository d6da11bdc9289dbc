"""After any fault of run, disk or file, committed data can be read, and one line describes the fault."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from servetop.analysis.summary.summary_json import summary_json
from servetop.core.errors import NotARecordingError, RecordingError
from servetop.core.events import RequestRecord, RunEnd, Severity
from servetop.core.interfaces.recording_store import RecordingState
from servetop.core.interfaces.run_source import RunHeader
from servetop.core.tick import Tick
from servetop.recordings.library.catalog import describe
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.tick_transaction import TickTransaction
from servetop.reports.summary.summary import run_summary
from tests.recordings.rows import change

MakeTick = Callable[..., Tick]
MakeRequest = Callable[..., RequestRecord]
StartProgram = Callable[..., "subprocess.Popen[str]"]
END = RunEnd(at=1.0, exit_code=0, reason="")


def read_until(process: "subprocess.Popen[str]", line: str) -> None:
    """Wait for a line of a program's output."""
    assert process.stdout is not None
    for each in process.stdout:
        if each.strip() == line:
            return
    raise AssertionError(f"the program ended before it wrote {line!r}")


@pytest.fixture
def killed_recording(start_program: StartProgram, tmp_path: Path) -> Path:
    """A recording whose run was killed with -9 right after it reported that tick 49 was committed."""
    path = tmp_path / "killed.servetop"
    process = start_program("writer.py", path, 1000)
    read_until(process, "tick 49")
    process.send_signal(signal.SIGKILL)
    process.wait()
    return path


def test_a_run_killed_with_9_keeps_everything_up_to_its_last_tick(killed_recording: Path) -> None:
    assert killed_recording.with_name("killed.servetop-wal").stat().st_size > 0
    with closing(RecordingReader.open(killed_recording)) as reader:
        assert not reader.is_live()
        assert [tick.index for tick in reader.poll().ticks] == list(range(50))
        assert reader.request_count() == 200
        assert (reader.end, reader.damage) == (None, None)
        assert summary_json(run_summary(reader))["recording_state"] == "broken-off"
    assert describe(killed_recording).state is RecordingState.BROKEN_OFF


def test_opening_a_killed_run_merges_it_into_one_plain_file(killed_recording: Path) -> None:
    RecordingReader.open(killed_recording).close()
    assert [path.name for path in killed_recording.parent.iterdir()] == ["killed.servetop"]
    with closing(RecordingReader.open(killed_recording)) as reader:
        assert len(reader.poll().ticks) == 50


def test_a_run_killed_during_a_write_can_be_opened(start_program: StartProgram, tmp_path: Path) -> None:
    path = tmp_path / "run.servetop"
    process = start_program("writer.py", path, 1000)
    read_until(process, "tick 20")
    process.kill()  # it continues to tick 49 meanwhile
    process.wait()
    with closing(RecordingReader.open(path)) as reader:
        ticks = reader.poll().ticks
        assert [tick.index for tick in ticks] == list(range(len(ticks)))
        assert len(ticks) >= 21
        assert reader.request_count() == 4 * len(ticks)


def test_a_zombie_run_is_not_live(start_program: StartProgram, tmp_path: Path) -> None:
    path = tmp_path / "run.servetop"
    process = start_program("writer.py", path, 1000)
    read_until(process, "tick 49")
    with closing(RecordingReader.open(path)) as reader:
        assert reader.is_live()
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it is a zombie now
        assert not reader.is_live()


def test_another_process_with_the_same_pid_is_not_the_run(recorder: Recorder) -> None:
    change(recorder.path, "UPDATE run SET writer = json_set(writer, '$.started', 1.0)")
    with closing(RecordingReader.open(recorder.path)) as reader:
        assert not reader.is_live()


def write_large_recording(path: Path, header: RunHeader, *, make_tick: MakeTick, make_request: MakeRequest) -> None:
    """A finished recording of 400 ticks with a request each."""
    recorder = Recorder.create(path, header)
    for number in range(400):
        request = make_request(number, number * 0.25, tokens_at=[0.01 * i for i in range(1, 20)])
        recorder.commit(TickTransaction(tick=make_tick(number, ok=1, ttfts=[0.01, 0.02]), requests=[request]))
    recorder.close(END)


@pytest.fixture
def finished(tmp_path: Path, header: RunHeader, make_tick: MakeTick, make_request: MakeRequest) -> Path:
    path = tmp_path / "run.servetop"
    write_large_recording(path, header, make_tick=make_tick, make_request=make_request)
    return path


@pytest.mark.parametrize("share", [0.87, 0.75, 0.5])
def test_the_part_of_a_torn_file_before_the_tear_is_read(finished: Path, share: float) -> None:
    os.truncate(finished, int(finished.stat().st_size * share))
    with closing(RecordingReader.open(finished)) as reader:
        update = reader.poll()
        assert 10 < len(update.ticks) < 400
        assert [tick.index for tick in update.ticks] == list(range(len(update.ticks)))
        (note,) = update.notes
        assert note.severity is Severity.ERROR
        assert f"the first {len(update.ticks) * 0.25:.1f} s could be read, the rest is lost" in note.text
        assert reader.poll() == type(update)()
        assert summary_json(run_summary(reader))["recording_state"] == "damaged"


def test_a_file_torn_within_its_first_page_cannot_be_read(finished: Path) -> None:
    os.truncate(finished, 3000)
    with pytest.raises(RecordingError, match=r"run\.servetop is damaged.*nothing in it can be"):
        RecordingReader.open(finished)


@pytest.mark.parametrize("size", range(4096, 50_000, 1500))
def test_a_file_torn_anywhere_is_damaged_but_no_other_kind_of_file(finished: Path, size: int) -> None:
    os.truncate(finished, size)
    try:
        RecordingReader.open(finished).close()
    except NotARecordingError as error:
        pytest.fail(str(error))
    except RecordingError as error:
        found = str(error)
    else:
        found = ""
    assert not found or "is damaged" in found


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(position=st.integers(100, 80_000), noise=st.binary(min_size=1, max_size=5000))
def test_noise_anywhere_in_a_file_raises_only_recording_errors(finished: Path, position: int, noise: bytes) -> None:
    copy = finished.with_name("noisy.servetop")
    shutil.copyfile(finished, copy)
    with copy.open("r+b") as file:
        file.seek(position)
        file.write(noise)
    with contextlib.suppress(RecordingError), closing(RecordingReader.open(copy)) as reader:
        reader.poll()
        reader.requests(0.0, 100.0)
        summary_json(run_summary(reader))
    assert describe(copy).path == copy


@given(content=st.binary(max_size=300))
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_random_bytes_are_not_a_recording(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "random.servetop"
    path.write_bytes(content)
    with pytest.raises(RecordingError, match=r"random\.servetop is (not a servetop recording|empty)"):
        RecordingReader.open(path)


def test_another_programs_database_is_not_a_recording(tmp_path: Path) -> None:
    path = tmp_path / "browser.sqlite"
    change(path, "CREATE TABLE bookmark (url TEXT)")
    with pytest.raises(RecordingError, match="is not a servetop recording"):
        RecordingReader.open(path)


def test_a_missing_file_and_a_folder_have_different_errors(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match=r"no such recording: .*gone\.servetop"):
        RecordingReader.open(tmp_path / "gone.servetop")
    with pytest.raises(RecordingError, match="is a directory"):
        RecordingReader.open(tmp_path)


def test_a_newer_major_version_is_rejected_with_advice(finished: Path) -> None:
    change(finished, "PRAGMA user_version = 2003")
    with pytest.raises(
        RecordingError, match=r"written by a newer servetop \(format 2\); this one reads format 1: upgrade servetop"
    ):
        RecordingReader.open(finished)


READ_WITHOUT_RIGHTS = """
import os, sys
import numpy, psutil  # loaded later by servetop, when this process may not read the library any more
from pathlib import Path
import numpy  # where Python lies, another user may not look
from servetop.recordings.read.reader import RecordingReader
if os.getuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
reader = RecordingReader.open(Path(sys.argv[1]))
print(len(reader.poll().ticks))
reader.close()
"""


@pytest.fixture
def read_without_rights() -> Callable[[Path], str]:
    """Count the ticks of a recording as a user who may write neither the file nor its folder."""

    def read(path: Path) -> str:
        for file in path.parent.iterdir():
            file.chmod(0o644 if file.stat().st_mode & 0o400 else 0o000)
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": "/tmp"}
        with tempfile.TemporaryDirectory() as open_folder:  # pytest closes those of tmp_path to others
            os.chmod(open_folder, 0o755)
            folder = path.parent.rename(Path(open_folder) / "recordings")
            folder.chmod(0o555)
            command = [sys.executable, "-c", READ_WITHOUT_RIGHTS, str(folder / path.name)]
            result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
            folder.chmod(0o755)
            folder.rename(path.parent)
        return result.stdout.strip() or result.stderr

    return read


def test_a_finished_recording_in_a_read_only_folder_opens(
    finished: Path, read_without_rights: Callable[[Path], str]
) -> None:
    assert read_without_rights(finished) == "400"


@pytest.mark.parametrize("lost", ["-shm", "nothing"])
def test_a_killed_run_in_a_read_only_folder_opens_with_its_log(
    killed_recording: Path, lost: str, read_without_rights: Callable[[Path], str]
) -> None:
    killed_recording.with_name(killed_recording.name + lost).unlink(missing_ok=True)
    assert read_without_rights(killed_recording) == "50"


def test_a_file_without_read_permission_is_reported(finished: Path, read_without_rights: Callable[[Path], str]) -> None:
    finished.chmod(0o000)
    assert "RecordingError: cannot read" in read_without_rights(finished)
