"""The command line prints any untrusted text as harmless text."""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import shlex
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest

from servetop.cli.doctor.doctor import report_lines
from servetop.cli.doctor.doctor_checks import Finding, Status
from servetop.cli.headless.progress import LineProgress, Plan
from servetop.cli.inspection.recordings_list import print_list
from servetop.cli.main import main
from servetop.cli.report.report import print_recorded_end
from servetop.cli.tables import out_tables
from servetop.cli.viewing.live_runs import print_runs
from servetop.core.config import RunConfig
from servetop.core.errors import EngineError, ServetopError
from servetop.core.interfaces.recording_store import RecordingInfo, RecordingState
from servetop.recordings.format.liveness import Writer
from servetop.reports.tables import cell, light_table
from servetop.run import console
from servetop.run.process.registered_run import RegisteredRun
from servetop.run.process.run_registry import RunRegistry
from tests.hostile_recording import write_hostile_recording

HOSTILE = "\x1b]0;owned\x07\x1b]52;c;cm0=\x1b\\\x1b[2J\x9b31m\x9d0;t\x9c\x08\x7f\u202egnp\r\n\x85servetop: all is well"
HARMLESS = "gnp servetop: all is well"


def assert_harmless(text: str) -> None:
    """Nothing but printable characters and our own newlines: no line is another's than ours."""
    refused = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert not [each for each in text if unicodedata.category(each) in refused and each not in "\n\u200d"]
    assert not [line for line in text.splitlines() if line.startswith("servetop: all")]


@pytest.fixture
def hostile_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A recording with hostile text in every text field."""
    monkeypatch.setenv("SERVETOP_RECORDINGS", str(tmp_path))
    write_hostile_recording(tmp_path / "a\x1b]0;owned\x07\x9b2J\u202eb.servetop", HOSTILE)
    return tmp_path


@pytest.mark.parametrize(
    "command", [["ls"], ["summary"], ["manifest"], ["ls", "--json"], ["summary", "--json"], ["manifest", "--json"]]
)
def test_a_hostile_recording_is_listed_and_summarised_as_harmless_text(
    hostile_folder: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command) == 0
    printed = capsys.readouterr()
    assert printed.out
    assert_harmless(printed.out)
    assert_harmless(printed.err)


@pytest.mark.parametrize(
    "text", ["::stop-commands::pwned", f"{'y' * 66} ::stop-commands::pwned", "##[stop-commands]pwned"]
)
@pytest.mark.parametrize(
    "command",
    [*map(str.split, ("ls", "summary", "manifest", "check x --github", "summary --story", "verify x", "ls --json"))],
)
def test_a_recording_gives_no_command_to_a_ci_runner(
    command: list[str], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SERVETOP_RECORDINGS", str(tmp_path))
    write_hostile_recording(tmp_path / "x.servetop", text)
    main(command)
    printed = capsys.readouterr()
    lines = (printed.out + printed.err).splitlines()
    assert any("stop-commands" in line for line in lines) or command[0] == "verify"
    assert [line for line in lines if line.lstrip().startswith("::stop") or "##[" in line] == []


def test_json_escapes_unprintable_characters_without_loss(
    hostile_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["summary", "--json"]) == 0
    printed = capsys.readouterr().out
    assert printed.rstrip("\n").isascii()
    assert printed.rstrip("\n").isprintable()
    assert json.loads(printed)["model_id"] == HOSTILE


def test_the_end_of_a_hostile_run_is_printed_as_harmless_text(
    hostile_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (recording,) = hostile_folder.glob("*.servetop")
    print_recorded_end(recording)
    printed = capsys.readouterr().err
    assert_harmless(printed)
    assert printed == f"  │ {HARMLESS.removeprefix('gnp')}\nservetop: {HARMLESS}\n"


@pytest.mark.parametrize(
    "command", [["summary", HOSTILE], ["ls", HOSTILE], ["engines", HOSTILE], ["--goodput", HOSTILE], [HOSTILE]]
)
def test_an_error_quotes_the_command_line_as_one_harmless_line(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SERVETOP_RECORDINGS", str(tmp_path))
    main(command)
    printed = capsys.readouterr()
    assert_harmless(printed.out + printed.err)


def test_findings_of_the_doctor_are_harmless_lines(capsys: pytest.CaptureFixture[str]) -> None:
    console.out(*report_lines([Finding("engine x", Status.FIX, HOSTILE, HOSTILE)]))
    printed = capsys.readouterr().out
    assert_harmless(printed)
    assert len(printed.splitlines()) == 4


def test_progress_and_engine_output_are_harmless_lines(capsys: pytest.CaptureFixture[str]) -> None:
    LineProgress(Plan.of(RunConfig())).print_line(f"warning: load: {HOSTILE}")
    console.quote([HOSTILE, "ツール ready"])
    console.message(str(EngineError(HOSTILE)))
    printed = capsys.readouterr().err
    assert_harmless(printed)
    assert "ツール ready" in printed
    assert len(printed.splitlines()) == 4


def test_the_traceback_of_an_unexpected_error_is_harmless(capsys: pytest.CaptureFixture[str]) -> None:
    console.crash(ValueError, ValueError(HOSTILE), None)
    printed = capsys.readouterr().err
    assert printed == f"ValueError: {HARMLESS.replace(' ', chr(10) * 2, 1)}\n"


def test_a_table_is_harmless_and_keeps_its_columns(capsys: pytest.CaptureFixture[str]) -> None:
    table = light_table("name", "value")
    table.add_row(HOSTILE, cell(HOSTILE))  # the first as an unsanitized string
    table.add_row(cell("模型 👩\u200d💻"), cell("[bold]1[/]"))
    out_tables(table)
    printed = capsys.readouterr().out
    assert not [
        each
        for each in printed.replace("\u200d", "")
        if unicodedata.category(each) in {"Cc", "Cf"} - {"\n"} and each != "\n"
    ]
    assert "模型 👩\u200d💻" in printed
    assert "[bold]1[/]" in printed


def test_in_a_pipe_a_table_is_neither_cut_off_nor_folded(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    table = light_table("name", "value")
    table.add_row("a-name-" * 40, "a-value-" * 40)
    out_tables(table)
    assert any("a-name-" * 40 in line and "a-value-" * 40 in line for line in capsys.readouterr().out.splitlines())


def test_a_closed_pipe_is_not_an_error() -> None:
    program = "from servetop.run import console\nfor _ in range(100_000): console.out('line')"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_a_full_disk_behind_stdout_is_an_error_in_one_line() -> None:
    class Full(io.StringIO):
        def write(self, _: str) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(ServetopError, match="cannot write to standard output"), contextlib.redirect_stdout(Full()):
        console.out("result")
    with contextlib.redirect_stderr(Full()):
        console.message("the message has no reader")


def test_an_encoding_without_the_characters_gets_escapes() -> None:
    buffer = io.BytesIO()
    stream = io.TextIOWrapper(buffer, encoding="ascii")
    console.write(stream, "a │ ツ\n")
    assert buffer.getvalue() == b"a \\u2502 \\u30c4\n"


def test_streams_closed_at_the_start_are_skipped() -> None:
    done = subprocess.run(
        ["sh", "-c", f"exec {shlex.quote(sys.executable)} -m servetop ls >&- 2>&-"],
        env=os.environ | {"SERVETOP_RECORDINGS": "/nonexistent"},
        check=False,
    )
    assert done.returncode == 0


@pytest.mark.parametrize("columns", [40, 80, 120, 200])
def test_names_of_recordings_are_never_cut_or_folded(
    columns: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ["20261122-070000-a-night-with-vllm-meta-llama-Llama-2-7b-chat-hf", "short"]
    found = [
        RecordingInfo(
            path=tmp_path / f"{name}.servetop",
            engine="vllm",
            model="m" * 60,
            started=0.0,
            state=RecordingState.FINISHED,
        )
        for name in names
    ]
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    monkeypatch.setenv("COLUMNS", str(columns))
    print_list(found)
    lines = capsys.readouterr().out.splitlines()
    assert [name for name in names if not any(name in line for line in lines)] == []
    assert ("m" * 60 in "".join(lines)) == (columns == 200)


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_recordings_of_active_runs_are_never_cut_or_folded(
    columns: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recording = Path("/home/ann/.local/share/servetop/recordings/20261122-070000-vllm-llama-2-7b.servetop")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    me = Writer.this_process()
    run = RegisteredRun(
        id="k7fq",
        pid=me.pid,
        began=me.started,
        host=me.host,
        engine="vllm",
        model="",
        label="",
        recording=recording,
        state="running",
    )
    RunRegistry().write(run)
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    monkeypatch.setenv("COLUMNS", str(columns))
    print_runs(as_json=False)
    (shown,) = [line for line in capsys.readouterr().out.splitlines() if "k7fq" in line]
    assert recording.stem in shown
    assert (str(recording) in shown) == (columns == 200)


def test_json_is_valid_with_infinite_and_nan_figures(capsys: pytest.CaptureFixture[str]) -> None:
    console.out_json({"a": float("nan"), "b": [float("inf"), 1.5], "c": {"d": (-float("inf"), "NaN", None, 10**400)}})
    reported = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert reported == {"a": None, "b": [None, 1.5], "c": {"d": [None, "NaN", None, 10**400]}}
