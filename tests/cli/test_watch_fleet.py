"""A watch of several simulators over HTTP: each that has a trouble is named with it, and no other one."""

from __future__ import annotations

import contextlib
import itertools
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

import pytest

from servetop.analysis.fleet.replica_row import ReplicaClass, ReplicaRow
from servetop.analysis.series.page_rates import LONGEST_UNREAD
from servetop.recordings.read.reader import RecordingReader
from servetop.tui.state.fleet_state import FleetState
from tests.harness import Servetop, answers, opened, printed_url, wait_for

CALM = {"attaching", "serving", "idle"}
FLAGS = ("serve", "--max-num-seqs", "4", "--port")


class Watched:
    """The growing recording of a watch, as a dashboard sees it."""

    def __init__(self, recording: Path) -> None:
        self._recording = recording
        self._reader: RecordingReader | None = None
        self._fleet = FleetState()
        self.states: dict[str, set[str]] = {}
        """Every state that each server has had."""

    def rows(self) -> dict[str, ReplicaRow]:
        """The newest row of each server by its name."""
        self._reader = self._reader or opened(self._recording)
        if self._reader is None:
            return {}
        self._fleet.fold(self._reader.poll())
        rows = self._fleet.at(self._fleet.until).rows
        for row in rows:
            self.states.setdefault(row.name, set()).add(row.state)
        return {row.name: row for row in rows}

    def kind(self, name: str) -> ReplicaClass | None:
        row = self.rows().get(name)
        return None if row is None else row.kind

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()


class Printed:
    """What a running process prints, as it comes."""

    def __init__(self, stream: IO[str] | None) -> None:
        assert stream is not None
        self._lines: list[str] = []
        self._reader = threading.Thread(target=self._read, args=(stream,), daemon=True)
        self._reader.start()

    def _read(self, stream: IO[str]) -> None:
        for line in stream:
            self._lines.append(line)

    @property
    def text(self) -> str:
        return "".join(self._lines)

    def whole(self) -> str:
        """All of it, after the end of the process."""
        self._reader.join(timeout=60)
        return self.text


def seen_late(recording: Path, *, replica: int) -> set[str]:
    """The state of a server that was not read for seconds, as on a machine that is busy with something else."""
    with contextlib.closing(RecordingReader.open(recording)) as reader:
        ends = [each.scrape_end for each in reader.poll().replica_samples if each.replica == replica]
    return {"no metrics"} if any(later - end > LONGEST_UNREAD for end, later in itertools.pairwise(ends)) else set()


@contextlib.contextmanager
def simulators(folder: Servetop, count: int) -> Iterator[tuple[list[subprocess.Popen[str]], list[str]]]:
    with contextlib.ExitStack() as running:
        processes = [running.enter_context(folder.started(*FLAGS, "0")) for _ in range(count)]
        urls = [printed_url(process) for process in processes]
        wait_for(lambda: all(answers(f"{url}/health") for url in urls), seconds=60, what="the simulators")
        yield processes, urls
        for process in processes:
            process.terminate()


@pytest.mark.integration
def test_a_killed_a_full_and_a_restarted_server_are_named_and_no_other(servetop: Servetop, tmp_path: Path) -> None:
    recording = tmp_path / "watch.servetop"
    names = ("calm", "killed", "full", "restarted")
    with simulators(Servetop(tmp_path / "simulators"), 4) as (processes, urls), contextlib.ExitStack() as stack:
        servers = [f"{name}={url}" for name, url in zip(names, urls, strict=True)]
        watch = stack.enter_context(servetop.started("watch", *servers, "--headless", "--record", str(recording)))
        printed = Printed(watch.stderr)
        watched = Watched(recording)
        stack.callback(watched.close)
        wait_for(lambda: {watched.kind(name) for name in names} == {ReplicaClass.IDLE}, seconds=90, what="all idle")
        processes[1].kill()
        wait_for(lambda: watched.kind("killed") is ReplicaClass.DEAD, seconds=60, what="the one that was killed")
        load = ("--num-prompts", "400", "--request-rate", "inf", "--input-len", "64", "--output-len", "400", "--json")
        full = stack.enter_context(Servetop(tmp_path / "load").started("--url", urls[2], *load))
        wait_for(lambda: watched.kind("full") is ReplicaClass.SATURATED, seconds=90, what="the one that is full")
        wait_for(lambda: "full: batch-bound" in printed.text, seconds=60, what="the line about the full one")
        processes[3].terminate()
        processes[3].wait(timeout=60)
        again = ("serve", "--max-num-seqs", "8", "--port", str(urlsplit(urls[3]).port))
        second = stack.enter_context(Servetop(tmp_path / "again").started(*again))
        wait_for(lambda: watched.kind("restarted") is ReplicaClass.RESTARTED, seconds=90, what="the restarted one")
        rows = watched.rows()
        for process in (full, watch):
            process.send_signal(signal.SIGINT)
        watch.wait(timeout=120)
        assert watch.stdout is not None
        out, err = watch.stdout.read(), printed.whole()
        full.communicate(timeout=120)
        second.terminate()
        second.communicate(timeout=120)
    assert watch.returncode == 0, err
    assert (rows["killed"].state, rows["full"].state) == ("no response", "batch-bound")
    assert "max_num_seqs 8" in rows["restarted"].differs
    assert watched.states["calm"] <= {*CALM, *seen_late(recording, replica=0)}
    assert watched.states["restarted"] <= {*CALM, "no response", "no metrics"}
    assert "killed: " in err
    assert "stopped responding" in err
    assert "now with max_num_seqs 8 instead of 4" in err
    assert "calm" not in "".join(line for line in err.splitlines() if "warning" in line)
    assert "restarted: 1 × restarted; max_num_seqs 8 instead of 4" in out
    again_printed = servetop("summary", str(recording))
    assert again_printed.out == out


@pytest.mark.integration
def test_the_state_of_all_is_printed_and_the_summary_has_each_server(servetop: Servetop, tmp_path: Path) -> None:
    with simulators(Servetop(tmp_path / "simulators"), 2) as (_, urls):
        done = servetop("watch", *urls, "http://127.0.0.1:9", "--headless", "--duration", "3s", "--json")
    assert done.code == 0, done.err
    assert "2 of 3 serve; 127.0.0.1:9 no response since 0:0" in done.err
    assert [(each["state"], each["watched"] is not None) for each in done.summary["replicas"] if "watched" in each] == [
        ("attached", True)
    ] * 2
    assert [each["state"] for each in done.summary["replicas"]] == ["attached", "attached", "gone"]
