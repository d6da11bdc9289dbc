"""`servetop reconcile` as a user runs it, with runs of the simulator in virtual time and what other tools print."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from servetop.cli.main import main
from tests.house.source_tree import TOP
from tests.reports.schema.test_summary_schema import schema_errors

SCHEMA = json.loads((TOP / "docs" / "schema" / "reconcile.json").read_text(encoding="utf-8"))
RESULTS = TOP / "tests" / "corpus" / "results"
STEPS = ["definition", "window", "load", "workload", "cache", "client", "unexplained"]


def predicted(folder: Path, name: str, *words: str) -> str:
    """A recording of the simulator in virtual time."""
    path = str(folder / f"{name}.servetop")
    lengths = ("--input-len", "128", "--output-len", "32", "--num-prompts", "200")
    assert main(["predict", "--model", "llama-2-7b", *lengths, "--record", path, *words]) == 0
    return path


def reconciled(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    capsys.readouterr()
    assert main(["reconcile", *words, "--json"]) == 0
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert schema_errors(report, SCHEMA, SCHEMA["$defs"]) == []
    return report


def steps_of(report: dict[str, Any], metric: str) -> dict[str, Any]:
    waterfall = next(each for each in report["waterfalls"] if each["metric"] == metric)
    effects = {each["kind"]: each["effect"] for each in waterfall["steps"]}
    assert waterfall["a"] + sum(each or 0.0 for each in effects.values()) == pytest.approx(waterfall["b"])
    return {**effects, "percent": waterfall["unexplained_percent"]}


def test_one_run_by_the_definitions_of_two_tools_leaves_nothing_unexplained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recording = predicted(tmp_path, "a", "--request-rate", "8")
    exported = str(tmp_path / "a.json")
    assert main(["export", recording, "--format", "vllm", "-o", exported]) == 0
    report = reconciled(capsys, recording, exported)
    assert (report["a"]["tool"], report["b"]["tool"]) == ("servetop", "vLLM bench")
    assert report["a"]["requests"] == report["b"]["completed"] == 200
    assert len(report["waterfalls"]) == 6
    for each in report["waterfalls"]:
        assert abs(each["unexplained_percent"]) < 0.01
        assert each["within_chance"] is True


def test_a_rate_that_was_sent_is_load(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    slow, fast = (predicted(tmp_path, rate, "--request-rate", rate) for rate in ("6", "9"))
    report = reconciled(capsys, slow, fast)
    rate, tpot = steps_of(report, "request_throughput"), steps_of(report, "mean_tpot_ms")
    assert rate["load"] == pytest.approx(3.0, rel=0.2)
    assert abs(rate["percent"]) < 3.0
    assert tpot["load"] > 0.3
    assert "load" in report["conclusion"]


def test_the_waterfall_reads_without_colour(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = (predicted(tmp_path, rate, "--request-rate", rate) for rate in ("6", "9"))
    capsys.readouterr()
    assert main(["reconcile", one, other]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"A  {one}: servetop {lines[0].split()[3].rstrip(',')}, 200 requests, 200 completed"
    table = lines[lines.index("throughput req/s") :]
    rows = {line.split()[0]: line for line in table if line.strip()}
    assert [name for name in rows if name in STEPS] == [each for each in STEPS if each not in ("cache", "client")]
    assert "│█████  requests sent per second" in rows["load"]
    assert "within chance" in rows["unexplained"]
    unknown = next(line for line in lines if line.startswith("client"))
    assert unknown.split("not known")[1].strip() == "the server's own times of the requests of A and B are missing"
    assert lines[-1].startswith("largest reasons: load (+")


def test_the_servers_own_times_show_what_a_client_adds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    truth = predicted(tmp_path, "truth", "--request-rate", "8")
    exported = tmp_path / "late.json"
    assert main(["export", truth, "--format", "vllm", "-o", str(exported)]) == 0
    document = json.loads(exported.read_text(encoding="utf-8"))
    document["ttfts"] = [each + 0.004 for each in document["ttfts"]]
    document["latencies"] = [each + 0.004 for each in document.get("latencies", [])]
    del document["mean_ttft_ms"]
    exported.write_text(json.dumps(document), encoding="utf-8")
    report = reconciled(capsys, truth, str(exported), "--truth-a", truth, "--truth-b", truth)
    steps = steps_of(report, "mean_ttft_ms")
    assert steps["client"] == pytest.approx(4.0, abs=0.01)
    assert abs(steps["percent"]) < 0.1
    assert (report["a"]["truth"], report["b"]["truth"]) == (truth, truth)


def test_results_that_cannot_be_read_are_refused_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reconcile", str(RESULTS / "vllm-rate.json"), "sample"]) == 2
    assert capsys.readouterr().err.rstrip().endswith("sample has 4 stages with load: give a recording of one load")
    assert main(["reconcile", str(RESULTS / "README.md"), "sample"]) == 2
    assert "not JSON" in capsys.readouterr().err


def test_a_summary_alone_needs_both_options_apart(capsys: pytest.CaptureFixture[str]) -> None:
    """The command of summary moved beside its report: its refusal stays."""
    assert main(["summary", "sample", "--json", "--markdown"]) == 2
    assert "--json and --markdown exclude each other" in capsys.readouterr().err
