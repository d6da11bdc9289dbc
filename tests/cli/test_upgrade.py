"""docs/how-to/upgrade.md as it stands: the load of a log is taken, and two versions are compared with it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from tests.cli.gateway_log import write_gateway_log
from tests.harness import Servetop
from tests.house.source_tree import TOP

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

PAGE = (TOP / "docs" / "how-to" / "upgrade.md").read_text(encoding="utf-8")
EXECUTED = [
    shlex.split(line.removeprefix("$ servetop ")) for line in PAGE.splitlines() if line.startswith("$ servetop")
]


def test_the_guide_answers_whether_to_upgrade(
    servetop: Servetop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_gateway_log(tmp_path / "gateway.jsonl", sessions=30, seconds=8.0)
    shape, pairs = EXECUTED
    done = servetop(*shape)
    assert done.code == 0, done.err
    assert done.out in PAGE
    done = servetop(*pairs, "--pairs", "4", "--json")
    assert done.code in (0, 98), done.err  # on a busy machine TTFT may need more pairs
    verdicts = {each["name"]: each["measured"]["verdict"] for each in done.summary["metrics"]}
    assert verdicts["mean_tpot_ms"] == "better"
    assert verdicts["p50_ttft_ms"] in ("better", "cannot tell")
    recordings = sorted(each.name for each in (tmp_path / "upgrade").glob("*.servetop"))
    assert recordings[0] == "a-001.servetop"
    assert len(recordings) == 2 * done.summary["pairs"]


def test_the_pairs_send_the_requests_of_the_trace(servetop: Servetop, tmp_path: Path) -> None:
    write_gateway_log(tmp_path / "gateway.jsonl", sessions=4, seconds=1.0)
    trace = tmp_path / "shape.jsonl"
    assert servetop("shape", str(tmp_path / "gateway.jsonl"), "-o", str(trace)).code == 0
    rows = [json.loads(line) for line in trace.read_text().splitlines()]
    load = ("--dataset-name", "trace", "--dataset-path", str(trace))
    words = (
        "--a",
        "",
        "--b",
        "--max-num-seqs 2",
        "--metric",
        "mean_ttft_ms",
        "--pairs",
        "1",
        "--into",
        str(tmp_path / "s"),
    )
    assert servetop("run-pairs", *load, *words).code == 98
    summaries = [servetop("summary", "--json", str(tmp_path / "s" / f"{arm}-001.servetop")).summary for arm in "ab"]
    for summary in summaries:
        assert summary["completed"] == len(rows)
        assert summary["total_input_tokens"] == sum(row["input_length"] for row in rows)
        assert summary["total_output_tokens"] == sum(row["output_length"] for row in rows)
