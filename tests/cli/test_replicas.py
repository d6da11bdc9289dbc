"""Several servers from the command line: requests in turn, figures for each, and a front door."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from servetop.recordings.read.reader import RecordingReader
from tests.harness import RAN, Servetop, answers, printed_url, wait_for

LOAD = ("--num-prompts", "12", "--request-rate", "50", "--input-len", "8", "--output-len", "5", "--json")


def test_a_front_door_without_a_url_is_an_error(servetop: Servetop) -> None:
    refused = servetop("--front-door", "http://x:1", *LOAD)
    assert (refused.code, "--front-door needs the --url of each server" in refused.complaint) == (2, True)


def test_a_metrics_url_with_several_servers_is_an_error(servetop: Servetop) -> None:
    refused = servetop("--url", "http://a:1", "--url", "http://b:1", "--metrics-url", "http://c:1", *LOAD)
    assert (refused.code, "--metrics-url belongs to one server" in refused.complaint) == (2, True)


def test_an_invalid_selector_is_an_error_before_anything_starts(servetop: Servetop) -> None:
    refused = servetop("--url", "http://a:1", "--metrics-url", "http://prom:9090/?job=x", *LOAD)
    assert (refused.code, "the part after the ? must be a selector" in refused.complaint) == (2, True)


@pytest.fixture(scope="module")
def simulators(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    folder = Servetop(tmp_path_factory.mktemp("none"))
    with contextlib.ExitStack() as running:
        started = [running.enter_context(folder.started("serve", "--port", "0")) for _ in range(2)]
        first, second = map(printed_url, started)
        wait_for(lambda: answers(f"{first}/health") and answers(f"{second}/health"), seconds=30, what="both simulators")
        yield first, second
        for process in started:
            process.terminate()
        for process in started:
            process.communicate(timeout=120)


@pytest.mark.integration
def test_a_run_over_two_servers_reports_each(simulators: tuple[str, str], tmp_path: Path) -> None:
    first, second = simulators
    done = Servetop(tmp_path)("--url", first, "--url", second, *LOAD)
    assert done.code in RAN, done.err
    replicas = done.summary["replicas"]
    assert [(each["url"], each["completed"], each["total_output_tokens"]) for each in replicas] == [
        (first, 6, 30),
        (second, 6, 30),
    ]
    assert [each["server"]["generation_tokens"] for each in replicas] == [30, 30]
    assert done.summary["server"]["generation_tokens"] == 60


@pytest.mark.integration
def test_behind_a_front_door_servers_have_metrics_but_no_requests(simulators: tuple[str, str], tmp_path: Path) -> None:
    first, second = simulators
    done = Servetop(tmp_path)("--url", first, "--url", second, "--front-door", second, *LOAD)
    assert done.code in RAN, done.err
    assert [each["server"]["generation_tokens"] for each in done.summary["replicas"]] == [0, 60]
    assert not any("completed" in each for each in done.summary["replicas"])
    (recording,) = tmp_path.glob("*.servetop")
    reader = RecordingReader.open(recording)
    assert {row[0] for row in reader.request_rows(("replica",))} == {None}
    reader.close()
