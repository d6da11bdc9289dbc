"""Invalid input and faults: an error of one line, the documented exit code, and no data lost."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from servetop.recordings.read.reader import RecordingReader
from tests.cli.bad_server import BadServer
from tests.cli.mortal_server import TOKEN
from tests.harness import PYTHON, RAN, Servetop, opened, received, wait_for

pytestmark = pytest.mark.integration

BRIEF = ("--num-prompts", "4", "--max-concurrency", "2", "--input-len", "8", "--output-len", "4")


@contextlib.contextmanager
def under_load(servetop: Servetop, recording: Path) -> Iterator[tuple[subprocess.Popen[str], RecordingReader]]:
    """A headless run whose first tokens have been recorded, and a reader of its recording."""
    load = ("--request-rate", "8", "--duration", "60")
    with servetop.started("--headless", *load, "--record", str(recording)) as process:
        reader = wait_for(lambda: opened(recording), seconds=10, what="the recording")
        wait_for(lambda: received(reader), seconds=20, what="the first tokens")
        yield process, reader


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--engine", "vlm"), "vllm"),
        (("--model", "lama-2-7b"), "llama-2-7b"),
        (("--request-rate", "-3"), "not a request rate"),
        (("--request-rate", "1e12"), "beyond what one machine can send"),
        (("--request-rate", "inf"), "--max-concurrency or --num-prompts"),
        (("--ramp", "8:30s,banana"), "banana"),
        (("--ramp", "8:30s", "--duration", "9"), "leave out"),
        (("--goodput", "speed:9"), "ttft"),
        (("--threshold", "p99_tfft_ms<=5"), "p99_ttft_ms"),
        (("--metadata", "novalue"), "KEY=VALUE"),
        (("--extra-body", "{"), "JSON"),
        (("--endpoint", "embeddings"), "completions, chat or responses"),
        (("--url", "http://x", "--", "--dtype", "half"), "attaches"),
        (("--record", "a", "--no-record"), "exclude each other"),
        (("--api-key-env", "SERVETOP_NO_SUCH_KEY"), "export it"),
        (("--no-such-option",), "--no-such-option"),
    ],
)
def test_an_invalid_command_line_is_an_error_of_one_line(
    servetop: Servetop, words: tuple[str, ...], complaint: str
) -> None:
    done = servetop("--headless", *words)
    assert done.code == 2, done.err
    assert complaint in done.complaint


def test_with_json_a_usage_error_is_json(servetop: Servetop) -> None:
    done = servetop("--json", "--request-rate", "-3")
    assert done.code == 2
    assert done.summary == {"error": done.complaint, "exit_code": 2}


def test_a_missing_vllm_error_names_what_to_install_and_the_simulator(servetop: Servetop) -> None:
    servetop.environment["PATH"] = "/nonexistent"
    done = servetop("--engine", "vllm", "--headless", *BRIEF)
    assert done.code == 3
    assert "servetop[vllm]" in done.complaint
    assert "--engine sim" in done.complaint


def test_a_port_in_use_is_reported_before_anything_starts(servetop: Servetop) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = servetop("--port", str(port), "--headless", *BRIEF)
    assert done.code == 3
    assert str(port) in done.complaint


def test_an_unreachable_url_error_suggests_a_command(servetop: Servetop) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))  # it refuses connections, and no other process gets the port
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        done = servetop("--url", url, "--json", *BRIEF)
    assert done.code == done.summary["exit_code"] == 3
    assert f"nothing answers at {url}" in done.complaint
    assert "curl" in done.complaint
    assert done.summary["error"] == done.complaint
    assert "completed" not in done.summary
    assert done.summary["recording"] is None
    assert not list(servetop.folder.glob("*.servetop")), "no recording without a run is left"


@pytest.mark.parametrize("status", [401, 404, 429, 500])
def test_a_run_whose_requests_all_fail_reports_the_servers_message(
    servetop: Servetop, bad_server: BadServer, status: int
) -> None:
    bad_server.completions = (status, b'{"error":{"message":"go away"}}')
    done = servetop("--url", bad_server.url, "--json", *BRIEF)
    assert done.code == 1
    assert str(status) in done.complaint
    assert "go away" in done.complaint
    assert done.summary["completed"] == 0
    assert done.summary["failed"] > 0


@pytest.mark.parametrize(
    ("body", "cut", "counted_as"),
    [
        (TOKEN, True, "truncated"),
        (TOKEN * 2, False, "truncated"),
        (TOKEN + b"data: {broken\n\ndata: [DONE]\n\n", False, "errors"),
        (TOKEN + b'data: {"choices":[{"text":"\xff\xfe"}]}\n\ndata: [DONE]\n\n', False, "errors"),
    ],
    ids=["dies in the stream", "no end marker", "broken JSON", "broken UTF-8"],
)
def test_broken_streams_are_counted_by_their_cause(
    servetop: Servetop, bad_server: BadServer, body: bytes, cut: bool, counted_as: str
) -> None:
    bad_server.completions, bad_server.cut = (200, body), cut
    done = servetop("--url", bad_server.url, "--json", *BRIEF)
    assert done.code == 1
    assert done.summary["completed"] == 0
    assert done.summary[counted_as] == done.summary["failed"] == 4


def test_a_missing_api_key_error_names_the_option(servetop: Servetop, bad_server: BadServer) -> None:
    bad_server.models = (401, b'{"error":{"message":"no key"}}')
    done = servetop("--url", bad_server.url, "--headless", *BRIEF)
    assert done.code == 3
    assert "--api-key-env" in done.complaint


def test_an_api_key_reaches_the_server_but_never_the_recording(
    servetop: Servetop, bad_server: BadServer, tmp_path: Path
) -> None:
    servetop.environment["MY_KEY"] = "top-secret-123456"
    recording = tmp_path / "run.servetop"
    done = servetop(
        "--url", bad_server.url, "--api-key-env", "MY_KEY", "--headless", *BRIEF, "--record", str(recording)
    )
    assert done.code in RAN, done.err
    assert b"top-secret" not in recording.read_bytes()


def test_an_unwritable_recording_is_reported_before_the_engine_starts(servetop: Servetop) -> None:
    done = servetop("--headless", *BRIEF, "--record", "/dev/null/run.servetop")
    assert done.code == 1
    assert "cannot record to" in done.complaint


def test_an_existing_recording_is_never_overwritten(servetop: Servetop, tmp_path: Path) -> None:
    recording = tmp_path / "night.servetop"
    recording.write_text("precious")
    done = servetop("--headless", *BRIEF, "--record", str(recording))
    assert done.code == 1
    assert recording.read_text() == "precious"


def test_a_file_that_is_not_a_recording_cannot_be_replayed(servetop: Servetop, tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("milk, bread, KV blocks" * 20)
    done = servetop("summary", str(text))
    assert done.code == 1
    assert "not a servetop recording" in done.complaint


def test_a_recording_of_a_newer_major_version_is_refused(servetop: Servetop, tmp_path: Path) -> None:
    recording = tmp_path / "run.servetop"
    assert servetop("--headless", *BRIEF, "--record", str(recording)).code in RAN
    with sqlite3.connect(recording) as connection:
        connection.execute("PRAGMA user_version = 2000")
    done = servetop("summary", str(recording))
    assert done.code == 1
    assert "upgrade servetop" in done.complaint


def test_a_truncated_recording_shows_what_remains(servetop: Servetop, tmp_path: Path) -> None:
    recording = tmp_path / "run.servetop"
    assert servetop("--headless", "--request-rate", "8", "--duration", "3", "--record", str(recording)).code in RAN
    whole = recording.read_bytes()
    recording.write_bytes(whole[: len(whole) * 3 // 4])
    done = servetop("summary", str(recording))
    assert "Traceback" not in done.err
    assert done.code == 0 or "damaged" in done.complaint


def test_the_dashboard_without_a_terminal_suggests_headless(servetop: Servetop) -> None:
    done = servetop(*BRIEF)
    assert done.code == 2
    assert "--headless" in done.complaint


def test_an_engine_killed_during_the_load_ends_the_run_with_its_last_log_lines(
    servetop: Servetop, tmp_path: Path
) -> None:
    recording = tmp_path / "run.servetop"
    with under_load(servetop, recording) as (process, reader):
        reader.refresh()
        facts = reader.header.engine
        assert facts is not None
        assert facts.pid is not None
        os.kill(facts.pid, signal.SIGKILL)
        process.wait(20)
        assert process.stderr is not None
        err = process.stderr.read()
    assert process.returncode == 3
    assert "│" in err
    end = RecordingReader.open(recording).poll().end
    assert end is not None
    assert end.exit_code == 3


@pytest.mark.parametrize("when", ["boot", "load", "drain"])
def test_ctrl_c_at_every_stage_closes_the_recording_and_leaves_no_process(
    servetop: Servetop, tmp_path: Path, when: str
) -> None:
    recording = tmp_path / "run.servetop"
    slow = ("--engine-command", f'{PYTHON} -c "import time; time.sleep(60)"') if when == "boot" else ()
    load = ("--request-rate", "8", "--duration", "1" if when == "drain" else "60", "--output-len", "1000")
    with servetop.started("--headless", *slow, *load, "--record", str(recording)) as process:
        reader = wait_for(lambda: opened(recording), seconds=10, what="the recording")
        wait_for(lambda: _reached(reader, when), seconds=20, what=when)
        reader.close()
        children = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    end = RecordingReader.open(recording).poll().end
    assert end is not None
    assert end.exit_code == 130
    assert not recording.with_name("run.servetop-wal").exists()
    assert not [child for child in children if child.is_running() and child.status() != psutil.STATUS_ZOMBIE]


def test_a_run_killed_by_sigkill_keeps_its_ticks_and_leaves_no_process(servetop: Servetop, tmp_path: Path) -> None:
    recording = tmp_path / "run.servetop"
    with under_load(servetop, recording) as (process, reader):
        children = psutil.Process(process.pid).children(recursive=True)
        seen = reader.ticks()[-1].index
        process.send_signal(signal.SIGKILL)
        process.wait()
    left = RecordingReader.open(recording)
    assert not left.is_live()
    assert left.ticks()[-1].index >= seen
    _, alive = psutil.wait_procs(children, timeout=60)
    assert not alive


def _reached(reader: RecordingReader, when: str) -> bool:
    ticks = reader.ticks()
    if when == "boot":
        return len(ticks) > 2
    if when == "load":
        return any(tick.client.output_tokens for tick in ticks)
    return any(tick.client.gauges.request_rate is None and tick.client.gauges.in_flight for tick in ticks)
