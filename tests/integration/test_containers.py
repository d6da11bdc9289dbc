"""llama-server in a container of a real podman: the same numbers, and no container is left, however the run ends."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from servetop.recordings.read.reader import RecordingReader
from tests.harness import RAN, Servetop, wait_for
from tests.integration.harness import ENVIRONMENT, home_of, loaded, noticed_in_time, run_time

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

LOAD = ("--max-concurrency", "3", "--input-len", "12", "--output-len", "40")


@dataclass(frozen=True)
class Podman:
    """The installed podman and its image of llama-server."""

    home: Path
    model: Path

    @property
    def environment(self) -> dict[str, str]:
        return {**ENVIRONMENT, "CONTAINERS_CONF": str(self.home / "containers.conf")}

    @property
    def image(self) -> str:
        return (self.home / "image").read_text().strip()

    def words(self, *more: str) -> list[str]:
        engine = ("--engine", "llama.cpp", "--launcher", "podman", "--image", self.image, "--model", str(self.model))
        return [*engine, "--max-num-seqs", "3", *more, "--", "-c", "3072", "-t", "1"]

    def __call__(self, *words: str) -> str:
        environment = {**os.environ, **self.environment}
        return subprocess.run(["podman", *words], check=True, capture_output=True, text=True, env=environment).stdout

    def containers(self) -> list[str]:
        """Names of servetop's containers, in any state."""
        return [name for each in json.loads(self("ps", "--all", "--format", "json")) for name in each["Names"]]


@pytest.fixture
def podman() -> Podman:
    found = Podman(home_of("podman"), home_of("llama.cpp") / "tiny.gguf")
    assert found.containers() == []
    return found


@pytest.fixture
def servetop(podman: Podman, tmp_path: Path) -> Servetop:
    return Servetop(tmp_path, podman.environment)


@contextlib.contextmanager
def contained(servetop: Servetop, podman: Podman) -> Iterator[tuple[subprocess.Popen[str], RecordingReader]]:
    """A run whose engine serves in a container."""
    recording = servetop.folder / "run.servetop"
    words = podman.words(*LOAD, "--duration", "120", "--headless", "--record", str(recording))
    with loaded(servetop, words, recording, seconds=60) as (process, reader):
        assert len(podman.containers()) == 1
        yield process, reader


def test_what_is_counted_is_the_same_in_a_container_and_nothing_is_left(podman: Podman, servetop: Servetop) -> None:
    done = servetop(*podman.words(*LOAD, "--num-prompts", "24", "--json"))
    assert done.code in RAN, done.err
    summary = done.summary
    assert (summary["completed"], summary["failed"], summary["engine"]["max_num_seqs"]) == (24, 0, 3)
    assert summary["server"]["generation_tokens"] == summary["total_output_tokens"] == 24 * 40
    assert podman.containers() == []


def test_a_container_that_is_killed_is_noticed_within_two_seconds(podman: Podman, servetop: Servetop) -> None:
    with contained(servetop, podman) as (process, reader):
        killed_at = run_time(reader)
        podman("kill", *podman.containers())
        process.communicate(timeout=60)
    assert process.returncode == 3
    assert noticed_in_time(reader.path, killed_at)
    assert podman.containers() == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_stops_its_container(podman: Podman, servetop: Servetop, number: signal.Signals) -> None:
    with contained(servetop, podman) as (process, _):
        process.send_signal(number)
        process.communicate(timeout=60)
    assert process.returncode == 130
    assert podman.containers() == []


def test_a_killed_run_leaves_no_container(podman: Podman, servetop: Servetop) -> None:
    with contained(servetop, podman) as (process, _):
        process.kill()
    wait_for(lambda: not podman.containers(), seconds=30, what="the end of the container")


def test_an_image_that_is_not_there_is_told_in_one_line(podman: Podman, servetop: Servetop) -> None:
    words = [word if word != podman.image else "localhost/no-such-image" for word in podman.words(*LOAD)]
    done = servetop("--num-prompts", "3", "--headless", *words)
    assert done.code == 3
    assert done.complaint.startswith("llama.cpp did not start: its image could not be fetched: check --image")
    assert podman.containers() == []
