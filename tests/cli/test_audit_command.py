"""`servetop audit` as a user runs it: what the simulator saw of a client beside what the client reports."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import psutil
import pytest

from servetop.cli.main import main
from servetop.core.errors import ExitCode
from servetop.run.reconcile.tool_run import read_tool_run
from tests.cli.small_client import COUNT, TOKENS
from tests.harness import RAN, SLOW_MACHINE, Servetop, wait_for
from tests.house.source_tree import TOP
from tests.reports.schema.test_summary_schema import schema_errors

CLIENT = [sys.executable, str(Path(__file__).parent / "small_client.py"), "{url}"]
FAST = ("--time-scale", "0.2")
SCHEMA = json.loads((TOP / "docs" / "schema" / "audit.json").read_text(encoding="utf-8"))


def figures(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in report["figures"]}


def test_figures_of_a_client_stand_beside_those_of_the_server(servetop: Servetop, tmp_path: Path) -> None:
    result = tmp_path / "result.json"
    done = servetop("audit", *FAST, "--json", "--result", str(result), "--", *CLIENT, str(result))
    assert done.code == 0, done.err
    report = done.summary
    assert (report["exit_code"], report["error"]) == (0, None)
    assert schema_errors(report, SCHEMA, SCHEMA["$defs"]) == []
    assert report["requests"]["seen"] == COUNT + 1
    assert (report["requests"]["before"], report["requests"]["after"]) == (1, 0)
    assert report["requests"]["others"] == [{"method": "GET", "path": "/v1/models", "status": 200, "count": 1}]
    assert (report["result"]["tool"], report["result"]["matched_by"]) == ("vLLM bench", "clock")
    found = figures(report)
    assert found["completed"] == {"name": "completed", "truth": COUNT, "client": COUNT, "error_percent": 0.0}
    assert found["total_output_tokens"]["truth"] == found["total_output_tokens"]["client"] == COUNT * TOKENS
    assert found["total_input_tokens"]["truth"] == 20 * COUNT
    measured = json.loads(result.read_text(encoding="utf-8"))
    assert found["mean_ttft_ms"]["client"] == pytest.approx(1000 * fmean(measured["ttfts"]))
    assert all(found[name]["truth"] > 0 for name in ("mean_ttft_ms", "mean_e2el_ms"))
    errors = {each["name"]: each for each in report["request_errors"]}
    assert errors.keys() == {"arrival", "ttft", "tpot", "e2el"}
    found_error = found["mean_ttft_ms"]["client"] - found["mean_ttft_ms"]["truth"]
    assert errors["ttft"]["mean"] == pytest.approx(found_error, abs=0.01)  # means do not depend on the order
    assert errors["arrival"]["mean"] >= 0  # the client sends before the server receives


def test_without_a_result_the_server_alone_is_printed(servetop: Servetop, tmp_path: Path) -> None:
    done = servetop("audit", *FAST, "--", *CLIENT, str(tmp_path / "result.json"))
    assert done.code == 0, done.err
    assert f"requests  {COUNT + 1} seen" in done.out
    assert "others    GET /v1/models 200: 1" in done.out
    assert re.search(r"^output tokens +66$", done.out, re.MULTILINE)
    assert "error" not in done.out


@pytest.mark.integration
def test_servetop_itself_is_audited_by_its_recording(servetop: Servetop, tmp_path: Path) -> None:
    recording = str(tmp_path / "run.servetop")
    load = ("--request-rate", "20", "--num-prompts", "30", "--num-warmups", "2", "--output-len", "8", "--headless")
    words = (sys.executable, "-m", "servetop", "--url", "{url}", *load, "--record", recording)
    report = servetop("audit", "--json", "--result", recording, "--", *words).summary
    assert report["client"]["exit_code"] in RAN, report
    assert (report["result"]["tool"], report["result"]["matched_by"]) == ("servetop", "clock")
    assert (report["requests"]["seen"], report["requests"]["before"]) == (32, 2)
    found = figures(report)
    for name in ("requests", "completed", "total_input_tokens", "total_output_tokens"):
        assert found[name]["truth"] == found[name]["client"]
    assert found["total_output_tokens"]["truth"] == 240


def test_a_client_that_fails_is_reported_with_its_last_lines(servetop: Servetop, tmp_path: Path) -> None:
    done = servetop("audit", *FAST, "--", *CLIENT, str(tmp_path / "result.json"), "fail")
    assert done.code == ExitCode.RUN_FAILED
    assert "requests  2 seen" in done.out
    assert done.complaint == "the client exited with status 3: see its last lines above"
    assert done.err.splitlines()[-2] == "  │ no tokenizer: it is gated"


def test_a_failure_is_in_the_json_once(servetop: Servetop, tmp_path: Path) -> None:
    words = ("--", *CLIENT, str(tmp_path / "result.json"), "fail", "--api-key", "sk-0123456789abcdef")
    done = servetop("audit", *FAST, "--json", *words)
    assert (done.summary["exit_code"], done.summary["error"]) == (1, done.complaint)
    assert schema_errors(done.summary, SCHEMA, SCHEMA["$defs"]) == []
    assert "sk-0123456789abcdef" not in done.out + done.err


def test_a_client_that_sends_nothing_is_an_error(servetop: Servetop, tmp_path: Path) -> None:
    done = servetop("audit", "--", *CLIENT, str(tmp_path / "result.json"), "idle")
    assert done.code == ExitCode.RUN_FAILED
    assert done.complaint.startswith("the client sent no request that generates tokens")


def test_a_result_of_an_earlier_run_is_refused_after_the_report(servetop: Servetop, tmp_path: Path) -> None:
    old = tmp_path / "old.json"
    old.write_text("{}")
    os.utime(old, (1e9, 1e9))
    done = servetop("audit", *FAST, "--result", str(old), "--", *CLIENT, str(tmp_path / "new.json"))
    assert done.code == ExitCode.USAGE
    assert f"requests  {COUNT + 1} seen" in done.out
    assert "is older than this audit" in done.complaint


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("ignored", [False, True])
def test_a_signal_ends_the_client_and_all_its_processes(
    servetop: Servetop, tmp_path: Path, number: signal.Signals, ignored: bool
) -> None:
    words = [sys.executable, "-m", "servetop", "audit", *FAST, "--", *CLIENT, str(tmp_path / "r.json"), "hang"]
    shell = ["sh", "-c", 'trap "" INT; exec "$@"', "sh"] if ignored else []
    with subprocess.Popen(
        [*shell, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=servetop.environment
    ) as audit:
        assert audit.stderr is not None
        child = int(next(line for line in audit.stderr if "child" in line).split()[-1])
        audit.send_signal(number)
        out, err = audit.communicate(timeout=60 * SLOW_MACHINE)
    assert audit.returncode == ExitCode.INTERRUPTED, err
    assert re.search(r"^requests  \d", out, re.MULTILINE)
    assert err.splitlines()[-1] == f"servetop: ended by {number.name}, and the client with it"
    wait_for(lambda: not psutil.pid_exists(child), seconds=10, what="the end of the client's child")


def test_a_client_that_never_ends_is_ended_after_the_timeout(servetop: Servetop, tmp_path: Path) -> None:
    done = servetop("audit", *FAST, "--timeout", "4", "--", *CLIENT, str(tmp_path / "r.json"), "hang")
    assert done.code == ExitCode.RUN_FAILED
    assert re.search(r"^requests  \d", done.out, re.MULTILINE)
    reason = "the client was still running after 4.00 s and was ended: raise --timeout"
    assert done.err.splitlines()[-1] == f"servetop: {reason}"
    children = [int(pid) for pid in re.findall(r"child (\d+)", done.err)]  # none if the machine is busy
    wait_for(lambda: not any(map(psutil.pid_exists, children)), seconds=10, what="the end of the client's child")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["audit"], "no client to audit: add its command after --"),
        (["audit", "--", "true"], "does not use the simulator's address: write {url}"),
        (["audit", "--", "vllm", "bench", "serve", "--model", "{model}"], "does not use the simulator's address"),
        (["audit", "--format", "vllm", "--", "true", "{url}"], "--format is the format of the client's result"),
        (["audit", "--timeout", "0", "--", "true", "{url}"], "'0' is not a duration: use seconds"),
        (["audit", "--model", "nothing", "--", "true", "{url}"], "nothing"),
    ],
)
def test_a_line_that_makes_no_sense_is_refused(
    words: Sequence[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == ExitCode.USAGE
    assert reason in capsys.readouterr().err


def test_a_command_that_does_not_exist_is_reported(servetop: Servetop) -> None:
    done = servetop("audit", "--", "/no/such/client", "{url}")
    assert done.code in (ExitCode.RUN_FAILED, ExitCode.ENGINE_FAILED)
    assert "/no/such/client" in done.err


def test_what_the_server_saw_is_recorded_for_a_reconciliation(servetop: Servetop, tmp_path: Path) -> None:
    result, record = (str(tmp_path / name) for name in ("result.json", "server.servetop"))
    done = servetop("audit", *FAST, "--json", "--result", result, "--record", record, "--", *CLIENT, result)
    assert done.code == 0, done.err
    truth = read_tool_run(record)
    assert (truth.tool, len(truth.requests)) == ("simulator", COUNT + 1)
    rows = read_tool_run(result).compared(truth).rows
    assert rows.server is not None
    errors = {each["name"]: each["mean"] for each in done.summary["request_errors"]}
    difference = float((rows.ttft - rows.server.ttft).mean())
    assert difference * 1e3 == pytest.approx(errors["ttft"], abs=0.01)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("old.servetop", "already exists"),
        ("server.txt", "no recording by its suffix: give a name that ends in .servetop"),
    ],
)
def test_a_recording_that_cannot_be_written_is_refused_before_the_client_runs(
    name: str, reason: str, servetop: Servetop, tmp_path: Path
) -> None:
    (tmp_path / "old.servetop").write_bytes(b"")
    result = tmp_path / "result.json"
    done = servetop("audit", "--record", str(tmp_path / name), "--", *CLIENT, str(result))
    assert done.code != 0
    assert reason in done.complaint
    assert not result.exists()
