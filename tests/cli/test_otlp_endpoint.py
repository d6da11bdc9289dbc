"""`--otlp-endpoint` as a user runs it: a collector receives the metrics of a run, the last ones at its end."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from servetop.cli.main import main
from servetop.recordings.read.reader import RecordingReader
from tests.harness import RAN, Servetop


@contextlib.contextmanager
def collector() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The address of a collector, and the requests that it received."""
    requests: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            requests.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", requests
        finally:
            server.shutdown()
            thread.join()


def total(request: dict[str, Any], name: str, **labels: str) -> float:
    """The sum of a metric's points that have these labels."""
    (scope,) = request["resourceMetrics"][0]["scopeMetrics"]
    points = [point for each in scope["metrics"] if each["name"] == name for point in each["sum"]["dataPoints"]]
    found = [({each["key"]: each["value"]["stringValue"] for each in point["attributes"]}, point) for point in points]
    return float(sum(point["asDouble"] for has, point in found if labels.items() <= has.items()))


@pytest.mark.integration
def test_the_last_request_has_the_figures_of_the_summary(tmp_path: Path) -> None:
    servetop, recording = Servetop(tmp_path), tmp_path / "r.servetop"
    load = ("--request-rate", "40", "--num-prompts", "160", "--input-len", "32", "--output-len", "8")
    with collector() as (url, requests):
        ran = servetop("--headless", "--json", *load, "--otlp-endpoint", url, "--record", str(recording))
    assert ran.code in RAN, ran.err
    last = requests[-1]
    assert total(last, "servetop_requests_total", status="ok") == ran.summary["completed"] == 160
    assert total(last, "servetop_output_tokens_total") == ran.summary["total_output_tokens"]
    attributes = {
        each["key"]: each["value"]["stringValue"] for each in last["resourceMetrics"][0]["resource"]["attributes"]
    }
    assert attributes["service.name"] == "servetop"
    assert attributes["service.instance.id"] == "r"


@pytest.mark.integration
def test_a_collector_that_is_down_is_one_note_and_the_run_goes_well(tmp_path: Path) -> None:
    servetop, recording = Servetop(tmp_path), tmp_path / "r.servetop"
    with collector() as (url, _):
        pass
    ran = servetop("--headless", "--ramp", "20:12s", "--otlp-endpoint", url, "--record", str(recording))
    assert ran.code in RAN, ran.err
    with closing(RecordingReader.open(recording)) as reader:
        notes = [note.text for note in reader.notes() if note.source == "exporter"]
    assert len(notes) == 1
    assert notes[0].startswith(f"the collector at {url}/v1/metrics does not take metrics (")


def test_what_is_not_an_address_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code = main(["--headless", "--otlp-endpoint", "otel:4318", "--record", str(tmp_path / "r.servetop")])
    assert code == 2
    assert "'otel:4318' is not the address of a collector: use http:// or https://" in capsys.readouterr().err
    assert not (tmp_path / "r.servetop").exists()
