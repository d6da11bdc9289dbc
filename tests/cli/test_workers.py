"""Runs with several senders send the same requests as with one, and survive the loss of one."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
from pathlib import Path
from typing import Any

import psutil
import pytest

from servetop.analysis.trust.objectives import meets_objectives
from servetop.core.events import RequestStatus
from servetop.core.text.counted import counted
from servetop.recordings.read.reader import RecordingReader
from tests.harness import RAN, Servetop, command_line, opened, received, wait_for

pytestmark = pytest.mark.integration

BRIEF = ("--request-rate", "40", "--num-prompts", "40", "--input-len", "8", "--output-len", "4")


def senders_of(pid: int) -> list[psutil.Process]:
    children = psutil.Process(pid).children(recursive=True)
    return [child for child in children if "servetop.run.process.sender_program" in command_line(child)]


def flying(reader: RecordingReader) -> int:
    """Requests in flight at the end of the newest tick."""
    ticks = reader.ticks()
    return ticks[-1].client.gauges.in_flight if ticks else 0


def rows(recording: Path, columns: str) -> list[tuple[Any, ...]]:
    """Of the requests, by number; those that were never sent too."""
    with contextlib.closing(sqlite3.connect(recording)) as connection:
        return connection.execute(f"SELECT {columns} FROM request ORDER BY id").fetchall()


def requests_of(recording: Path) -> list[tuple[int, int, float]]:
    """Number, prompt tokens, and when it was due."""
    return rows(recording, "id, prompt_tokens, due")


def test_three_workers_send_what_one_sends(servetop: Servetop, tmp_path: Path) -> None:
    played = []
    for workers in ("1", "3"):
        recording = tmp_path / f"{workers}.servetop"
        load = (*BRIEF, "--num-warmups", "5", "--lengths", "lognormal")
        done = servetop("--json", *load, "--workers", workers, "--record", str(recording))
        assert done.code in RAN, done.err
        assert done.summary["completed"] == 40
        played.append([request for request in requests_of(recording) if request[0] >= 5])
    starts = [requests[0][2] for requests in played]
    one, three = (
        [(number, tokens, round(due - start, 3)) for number, tokens, due in requests]
        for requests, start in zip(played, starts, strict=True)
    )
    assert one == three


def test_the_ticks_of_all_senders_count_the_requests_that_meet_the_objectives(
    servetop: Servetop, tmp_path: Path
) -> None:
    recording = tmp_path / "run.servetop"
    load = (*BRIEF, "--max-concurrency", "4", "--goodput", "ttft:25", "e2el:400")
    done = servetop("--json", *load, "--workers", "2", "--record", str(recording))
    assert done.code in RAN, done.err
    with contextlib.closing(RecordingReader.open(recording)) as reader:
        limits, records = reader.header.config.goodput, reader.requests(0.0, 1e6)
        ticks = [tick.client for tick in reader.ticks() if tick.client.good is not None]
    assert limits == {"ttft": 0.025, "e2el": 0.4}
    assert sum(tick.judged or 0 for tick in ticks) == len(records) == 40
    assert sum(tick.good or 0 for tick in ticks) == sum(meets_objectives(each, limits) for each in records)
    felt = sum(meets_objectives(each, limits, from_due=True) for each in records)
    assert sum(tick.good_due or 0 for tick in ticks) == felt


def test_a_killed_sender_is_noted_and_the_run_continues_without_its_requests(
    servetop: Servetop, tmp_path: Path
) -> None:
    recording = tmp_path / "run.servetop"
    load = ("--request-rate", "30", "--duration", "6", "--output-len", "64", "--workers", "2", "--max-failures", "60")
    with servetop.started("--headless", *load, "--record", str(recording)) as process:
        reader = wait_for(lambda: opened(recording), seconds=10, what="the recording")
        wait_for(lambda: flying(reader) >= 8, seconds=20, what="requests in flight")
        senders = senders_of(process.pid)
        assert len(senders) == 2
        os.kill(senders[1].pid, signal.SIGKILL)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 1, err  # requests that the sender started but did not report are not recorded
    assert "died (exit code -9)" in err.splitlines()[-1]
    reader = RecordingReader.open(recording)
    update, records = reader.poll(), rows(recording, "id, status, error, worker")
    assert reader.damage is None
    assert update.end is not None
    assert [tick.index for tick in update.ticks] == list(range(update.ticks[-1].index + 1))
    notes = [note.text for note in update.notes if "died" in note.text]
    assert len(notes) == 1
    assert "died (exit code -9)" in notes[0]
    lost = [record for record in records if record[1] == RequestStatus.ERROR]
    assert 1 <= len(lost) < 60
    assert {record[2] for record in lost} == {"lost because its sender process died"}
    assert f"{counted(len(lost), 'request')} in flight " in notes[0]
    assert len({record[0] for record in records}) == len(records) > 120
    assert sum(tick.client.errors for tick in update.ticks) == len(lost)


def test_the_run_fails_when_its_last_sender_dies(servetop: Servetop, tmp_path: Path) -> None:
    recording = tmp_path / "run.servetop"
    load = ("--request-rate", "30", "--duration", "60", "--workers", "2")
    with servetop.started("--headless", *load, "--record", str(recording)) as process:
        reader = wait_for(lambda: opened(recording), seconds=10, what="the recording")
        wait_for(lambda: received(reader), seconds=20, what="the first tokens")
        for sender in senders_of(process.pid):
            os.kill(sender.pid, signal.SIGKILL)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "the load generator died (exit code -9)" in err
    assert "Traceback" not in err


def test_the_batch_size_changes_between_stages_under_several_senders(servetop: Servetop) -> None:
    load = ("--ramp", "20@8:1s,20@16:1s", "--input-len", "8", "--output-len", "4", "--workers", "2")
    done = servetop("--json", *load)
    assert done.code in RAN, done.err
    assert [(stage["max_num_seqs"], stage["failed"]) for stage in done.summary["stages"]] == [(8, 0), (16, 0)]


def test_workers_are_a_key_of_a_sweep_file(servetop: Servetop, tmp_path: Path) -> None:
    grid = "request_rate = [30, 60]\nnum_prompts = 12\nworkers = 2\n[workload]\ninput_len = 8\noutput_len = 4\n"
    (tmp_path / "grid.toml").write_text(grid)
    done = servetop("sweep", str(tmp_path / "grid.toml"), "--json")
    assert done.code in RAN, done.err
    assert [stage["completed"] for stage in done.summary["stages"]] == [12, 12]
    recording = next(servetop.folder.glob("*.servetop"))
    assert [number for number, _, _ in requests_of(recording)] == list(range(24))


@pytest.mark.parametrize("workers", ["0", "-1", "many", "1000"])
def test_an_invalid_number_of_workers_is_an_error(servetop: Servetop, workers: str) -> None:
    done = servetop("--headless", "--workers", workers, *BRIEF)
    assert done.code == 2
    assert "--workers" in done.complaint


def test_auto_starts_with_one_sender(servetop: Servetop, tmp_path: Path) -> None:
    recording = tmp_path / "run.servetop"
    done = servetop("--json", *BRIEF, "--workers", "auto", "--record", str(recording))
    assert done.code in RAN, done.err
    assert [number for number, _, _ in requests_of(recording)] == list(range(40))
