"""The registry of runs: ended runs are removed, and no other process is mistaken for one."""

from __future__ import annotations

import dataclasses
import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import pytest

from servetop.core.errors import UsageError
from servetop.recordings.format.liveness import Writer
from servetop.run.process.registered_run import RegisteredRun
from servetop.run.process.run_registry import Registration, RegistryError, RunRegistry, registry_folder


def run_of(
    process: Writer, run_id: str = "k7fq", recording: str = "/data/night.servetop", *, engine: str = "vllm"
) -> RegisteredRun:
    return RegisteredRun(
        id=run_id,
        pid=process.pid,
        began=process.started,
        host=process.host,
        engine=engine,
        model="llama-2-7b",
        label="",
        recording=Path(recording),
        state="running",
    )


@pytest.fixture
def registry(tmp_path: Path) -> RunRegistry:
    return RunRegistry(tmp_path / "state" / "runs")


@pytest.fixture
def me() -> Writer:
    return Writer.this_process()


def files(tmp_path: Path) -> list[str]:
    return sorted(each.name for each in (tmp_path / "state" / "runs").iterdir())


def test_an_active_run_is_listed_as_it_was_written(registry: RunRegistry, me: Writer) -> None:
    assert registry.runs() == []
    registry.write(run_of(me))
    assert registry.runs() == [run_of(me)]
    registry.write(dataclasses.replace(run_of(me), state="draining"))
    assert [run.state for run in registry.runs()] == ["draining"]
    registry.remove("k7fq")
    assert registry.runs() == []


def test_a_run_whose_texts_are_not_unicode_is_listed(registry: RunRegistry, me: Writer) -> None:
    registry.write(dataclasses.replace(run_of(me), label="a\udcff", recording=Path("/tmp/x\udcff.servetop")))
    (run,) = registry.runs()
    assert (run.label, run.recording) == ("a?", Path("/tmp/x?.servetop"))


def test_only_the_user_can_read_the_files(registry: RunRegistry, me: Writer, tmp_path: Path) -> None:
    folder = tmp_path / "state" / "runs"
    folder.mkdir(parents=True, mode=0o755)
    registry.write(run_of(me))
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "k7fq.json").stat().st_mode) == 0o600


def test_a_run_that_has_ended_is_removed_with_its_file(registry: RunRegistry, tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as child:
        started = psutil.Process(child.pid).create_time()
        registry.write(run_of(dataclasses.replace(Writer.this_process(), pid=child.pid, started=started)))
        assert len(registry.runs()) == 1
    assert registry.runs() == []
    assert files(tmp_path) == []


def test_a_recycled_pid_is_not_mistaken_for_a_run(registry: RunRegistry, me: Writer, tmp_path: Path) -> None:
    registry.write(run_of(dataclasses.replace(me, started=me.started - 3600)))
    assert registry.runs() == []
    assert files(tmp_path) == []


def test_a_run_of_another_machine_with_the_same_home_is_kept(registry: RunRegistry, me: Writer, tmp_path: Path) -> None:
    registry.write(run_of(dataclasses.replace(me, host="another")))
    assert registry.runs() == []
    assert files(tmp_path) == ["k7fq.json"]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"pid": 1}', b'{"pid": -1, "recording": 3}', b"\xff" * 99])
def test_a_damaged_file_hides_no_other_run(registry: RunRegistry, me: Writer, tmp_path: Path, content: bytes) -> None:
    registry.write(run_of(me))
    (tmp_path / "state" / "runs" / "zzzz.json").write_bytes(content)
    assert [run.id for run in registry.runs()] == ["k7fq"]


def test_runs_are_found_by_id_by_its_beginning_by_recording_and_as_the_latest(
    registry: RunRegistry, me: Writer
) -> None:
    first, second = run_of(me, "k7fq"), run_of(me, "kz22", "/data/day.servetop")
    for run in (first, second):
        registry.write(run)
    assert registry.find("k7fq") == registry.find("K7") == registry.find("night") == first
    assert registry.find("kz") == registry.find("/data/day.servetop") == second
    assert registry.find("latest") in (first, second)
    with pytest.raises(UsageError, match=r"'k' matches several runs: choose one of k\w+, k\w+"):
        registry.find("k")
    with pytest.raises(UsageError, match="no active run 'b2': choose one of"):
        registry.find("b2")
    with pytest.raises(UsageError, match="choose one of"):
        registry.find("")


def test_without_any_run_the_error_says_so(registry: RunRegistry) -> None:
    for name in ("latest", "k7fq"):
        with pytest.raises(UsageError, match="you have no active run"):
            registry.find(name)


def test_ids_are_short_and_start_with_a_letter(registry: RunRegistry) -> None:
    ids = {registry.new_id() for _ in range(50)}
    assert len(ids) > 40
    assert all(len(each) == 4 and each[0].isalpha() and each.isalnum() and each.islower() for each in ids)


def test_an_id_needs_no_access_to_the_folder(tmp_path: Path, me: Writer) -> None:
    unusable = tmp_path / ("x" * 300)
    registry, warnings = RunRegistry(unusable), list[str]()
    run = dataclasses.replace(run_of(me), id=registry.new_id())
    Registration(registry, run, warn=warnings.append).update(state="running", detached=False)
    assert warnings == [f"servetop ps does not list this run: cannot write to {unusable} (file name too long)"]


def test_an_attached_run_is_listed_under_the_engine_that_was_recognised(registry: RunRegistry, me: Writer) -> None:
    registration = Registration(registry, run_of(me, engine="gpu7:8000"), warn=lambda _: None)
    shown = []
    for engine in ("", "vllm"):
        registration.update(state="running", detached=False, engine=engine)
        shown += [run.engine for run in registry.runs()]
    registration.end()
    assert shown == ["gpu7:8000", "vllm"]


def test_an_unwritable_folder_is_reported_once_and_the_run_continues(me: Writer, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    registry = RunRegistry(tmp_path / "file" / "runs")
    warnings: list[str] = []
    registration = Registration(registry, run_of(me), warn=warnings.append)
    for state in ("booting", "running"):
        registration.update(state=state, detached=False)
    registration.end()
    (warning,) = warnings
    assert warning.startswith("servetop ps does not list this run: cannot write to ")
    with pytest.raises(RegistryError, match="cannot list the runs in"):
        registry.runs()


def test_a_folder_behind_a_link_is_rejected(me: Writer, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "runs").symlink_to(tmp_path / "elsewhere")
    registry = RunRegistry(tmp_path / "runs")
    with pytest.raises(RegistryError, match="not a folder of this user"):
        registry.write(run_of(me))


def test_without_a_home_the_folder_is_in_the_temporary_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert registry_folder() == Path("/state/servetop/runs")
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # as for a user who is not in /etc/passwd
    assert registry_folder() == Path(tempfile.gettempdir()) / f"servetop-runs-{os.getuid()}"
