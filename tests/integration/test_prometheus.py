"""A real Prometheus scrapes a run, and answers the queries of the docs with the figures of the summary."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness import RAN, Servetop, answers, wait_for
from tests.house.source_tree import TOP
from tests.reserved_port import reserved_port

pytestmark = pytest.mark.integration

LOAD = ("--ramp", "8:15s,0.2:10s", "--goodput", "ttft:10000", "--seed", "3", "--headless", "--prometheus-port")
"""The second stage has hardly a request, so that the last page that is scraped has nearly all of them."""
_ADDRESS = re.compile(r"the metrics of the run are at (http://127\.0\.0\.1:\d+)/metrics")


@pytest.fixture(autouse=True)
def installed() -> None:
    """Both programs, or a skip that says what to install."""
    if shutil.which("prometheus") is None or shutil.which("promtool") is None:
        pytest.skip("needs prometheus and promtool (tests/integration/install_prometheus.sh)")


@contextlib.contextmanager
def prometheus(target: str, folder: Path) -> Iterator[str]:
    """Start a Prometheus that scrapes `target` every second, and yield its address."""
    folder.mkdir()
    configuration = folder / "prometheus.yml"
    configuration.write_text(
        "global: {scrape_interval: 1s}\nscrape_configs:\n"
        f"  - job_name: servetop\n    static_configs:\n      - targets: ['{target.removeprefix('http://')}']\n"
    )
    with reserved_port() as port:
        process = subprocess.Popen(
            (
                "prometheus",
                f"--config.file={configuration}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            wait_for(lambda: answers(f"http://127.0.0.1:{port}/-/ready") or None, seconds=30.0, what="Prometheus")
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(timeout=30)


def asked(server: str, query: str, *, at: float | None = None) -> list[dict[str, Any]]:
    """Return the result of a query; an error of Prometheus fails the test with its message."""
    parameters = {"query": query} | ({} if at is None else {"time": f"{at:.3f}"})
    url = f"{server}/api/v1/query?{urllib.parse.urlencode(parameters)}"
    try:
        with urllib.request.urlopen(url, timeout=10) as response:
            found: list[dict[str, Any]] = json.load(response)["data"]["result"]
    except urllib.error.HTTPError as error:
        pytest.fail(f"{query}: {json.load(error)['error']}")
    return found


def number(server: str, query: str, *, at: float) -> float:
    """Return the only value of a query."""
    (found,) = asked(server, query, at=at)
    return float(found["value"][1])


def time_of(server: str) -> float:
    """Return the time by the clock of Prometheus, Unix time."""
    with urllib.request.urlopen(f"{server}/api/v1/query?query=time()", timeout=10) as response:
        return float(json.load(response)["data"]["result"][1])


def documented() -> list[str]:
    """Return the queries of the how-to page."""
    page = (TOP / "docs" / "how-to" / "prometheus.md").read_text(encoding="utf-8")
    block = page.split("in PromQL:")[1].split("## ")[0]
    return [line.strip() for line in block.splitlines() if line.startswith("    ")]


def dashboard_queries() -> list[str]:
    """Return the queries of the dashboard, with its variables replaced as Grafana does."""
    board = json.loads((TOP / "docs" / "grafana" / "servetop.json").read_text(encoding="utf-8"))
    queries = [target["expr"] for panel in board["panels"] for target in panel.get("targets", ())]
    return [re.sub(r"\$\{?(?!__)\w+\}?", ".*", each.replace("$__rate_interval", "1m")) for each in queries]


def test_a_real_prometheus_has_the_figures_of_the_summary(tmp_path: Path) -> None:
    servetop, recording = Servetop(tmp_path), tmp_path / "run.servetop"
    with servetop.started(*LOAD, "0", "--record", str(recording)) as run:
        assert run.stderr is not None
        address = next(found[1] for line in run.stderr if (found := _ADDRESS.search(line)))
        with prometheus(address, tmp_path / "prometheus") as server:
            page = urllib.request.urlopen(f"{address}/metrics", timeout=10).read()
            run.communicate(timeout=300)
            assert run.returncode in RAN
            checked = subprocess.run(("promtool", "check", "metrics"), input=page, capture_output=True, check=False)
            assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")
            summary = servetop("summary", str(recording), "--json").summary
            last = number(
                server, "max(max_over_time(timestamp(servetop_sent_requests_total)[5m:1s]))", at=time_of(server)
            )
            done = number(server, 'sum(servetop_requests_total{status="ok"})', at=last)
            assert done == pytest.approx(summary["completed"], abs=3)
            quantile = number(server, documented()[0], at=last) * 1e3
            # the buckets have bounds of 10 ms · 2ⁿ, between which Prometheus interpolates
            assert summary["p99_ttft_ms"] / 2.1 < quantile < max(summary["p99_ttft_ms"] * 2.1, 10.0)
            assert number(server, f"min({documented()[2]})", at=last) == pytest.approx(1.0)
            assert asked(server, documented()[3], at=last) != []
            failed = asked(server, documented()[1], at=last)
            assert [each for each in failed if float(each["value"][1]) > 0] == []
            shown = [query for query in dashboard_queries() if asked(server, query, at=last)]
            assert len(shown) > len(dashboard_queries()) / 2
