"""`--prometheus-port` as a user runs it: the metrics of a run and of a watch while they last."""

from __future__ import annotations

import contextlib
import itertools
import re
import shlex
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from servetop.cli.main import main
from servetop.core.errors import ExitCode
from servetop.run.exporter.metrics_socket import listening_socket
from tests.cli.terminal import Terminal
from tests.harness import RAN, Servetop, wait_for
from tests.run.exporter.recorded import Samples, falls, samples_of
from tests.watched_server import watched_server

OPENMETRICS = {"Accept": "application/openmetrics-text; version=1.0.0"}


def metrics_address(process: subprocess.Popen[str]) -> str:
    """The address that a run prints before anything else."""
    assert process.stderr is not None
    found = re.fullmatch(
        r"servetop: the metrics of the (?:run|watch) are at (http://127\.0\.0\.1:\d+/metrics)\n",
        process.stderr.readline(),
    )
    assert found is not None
    return found[1]


def scraped(url: str) -> Samples | None:
    """A page of metrics; None once the port is closed."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=OPENMETRICS), timeout=60) as response:
            return samples_of(response.read().decode())
    except (OSError, urllib.error.URLError):
        return None


def total(page: Samples, name: str) -> float:
    return sum(value for (each, _), value in page.items() if each == name)


def test_a_busy_port_is_one_line_before_anything_starts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recording = tmp_path / "run.servetop"
    with listening_socket("127.0.0.1", 0) as listening:
        port = listening.getsockname()[1]
        code = main(["--headless", "--prometheus-port", str(port), "--record", str(recording)])
    assert code == ExitCode.USAGE
    (line,) = capsys.readouterr().err.splitlines()
    assert line == (
        f"servetop: cannot serve metrics at 127.0.0.1:{port} (address already in use): "
        "try another --prometheus-port, or 0 for a free one"
    )
    assert not recording.exists()


@pytest.mark.integration
def test_a_run_is_scraped_while_it_lasts_and_agrees_with_its_summary(servetop: Servetop, tmp_path: Path) -> None:
    load = (
        "--request-rate",
        "40",
        "--num-prompts",
        "160",
        "--input-len",
        "32",
        "--output-len",
        "8",
        "--num-warmups",
        "3",
    )
    words = (
        "--headless",
        "--json",
        "--prometheus-port",
        "0",
        "--goodput",
        "ttft:5000",
        "--record",
        str(tmp_path / "r.servetop"),
    )
    pages: list[Samples] = []
    with servetop.started(*words, *load) as process:
        url = metrics_address(process)
        while (page := scraped(url)) is not None:
            pages.append(page)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=0.1)
        out, err = process.communicate(timeout=300)
    assert process.returncode in RAN, err
    assert [name for before, now in itertools.pairwise(pages) for name in falls(before, now)] == []
    last = pages[-1]
    assert 0 < total(last, "servetop_offered_requests_total") <= 163
    ended = last["servetop_requests_total", (("status", "ok"), ("warmup", "false"))]
    assert 0 < ended <= 160
    assert last["servetop_requests_total", (("status", "ok"), ("warmup", "true"))] == 3
    phases = {
        dict(labels)["servetop_run_phase"]
        for page in pages
        for (name, labels), value in page.items()
        if name == "servetop_run_phase" and value
    }
    assert {"booting", "running"} <= phases
    assert '"completed": 160' in out


@pytest.mark.integration
def test_a_detached_run_serves_its_metrics_at_the_printed_address(servetop: Servetop, tmp_path: Path) -> None:
    load = ("--request-rate", "20", "--duration", "60", "--input-len", "32", "--output-len", "8")
    started = servetop(*load, "--detach", "--prometheus-port", "0", "--record", str(tmp_path / "r.servetop"))
    assert started.code == 0, started.err
    url = started.err.split()[-1]
    try:
        wait_for(lambda: total(scraped(url) or {}, "servetop_sent_requests_total"), seconds=60, what="a request")
    finally:
        stopped = servetop("stop", "latest", "--now")
    assert stopped.code == 0, stopped.err
    assert scraped(url) is None


@pytest.mark.integration
def test_a_run_with_the_dashboard_serves_its_metrics_and_says_what_failed_at_its_end(
    servetop: Servetop, tmp_path: Path
) -> None:
    failing = shlex.join([sys.executable, "-c", "print('unseen'); raise SystemExit(7)"])
    words = ("--request-rate", "20", "--duration", "120", "--input-len", "32", "--output-len", "8")
    more = ("--prometheus-port", "0", "--on-finish", failing, "--record", str(tmp_path / "r.servetop"))
    argv = [sys.executable, "-m", "servetop", *words, *more]
    with Terminal.run(argv, servetop.environment) as terminal:
        address = re.compile(r"the metrics of the (?:run|watch) are at (http://127\.0\.0\.1:\d+/metrics)")
        found = wait_for(lambda: address.search(terminal.text), seconds=30, what="the address")
        wait_for(lambda: total(scraped(found[1]) or {}, "servetop_requests_total"), seconds=60, what="a request")
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.process.wait(300) == 130
        wait_for(lambda: "ended with exit code 7" in terminal.text, seconds=30, what="the line about the command")
        assert "servetop: --on-finish: " in terminal.text
        assert "unseen" not in terminal.text
    assert scraped(found[1]) is None


@pytest.mark.integration
def test_a_watch_serves_the_state_of_its_servers(servetop: Servetop, tmp_path: Path) -> None:
    with watched_server() as one, watched_server() as two:
        words = ("watch", f"one={one.url}", f"two={two.url}", "--headless", "--prometheus-port", "0")
        with servetop.started(*words, "--duration", "60s", "--record", str(tmp_path / "w.servetop")) as process:
            url = metrics_address(process)

            def running() -> Samples | None:
                page = scraped(url) or {}
                return page if total(page, "servetop_server_requests_running") == 6 else None

            page = wait_for(running, seconds=60, what="both servers")
            process.terminate()
            process.communicate(timeout=120)
    states = {
        dict(labels)["server"]: dict(labels)["servetop_server_state"]
        for (name, labels), value in page.items()
        if name == "servetop_server_state" and value
    }
    assert states == {"one": "attached", "two": "attached"}
    assert not any(name.startswith(("gen_ai", "servetop_requests", "servetop_trust")) for name, _ in page)
