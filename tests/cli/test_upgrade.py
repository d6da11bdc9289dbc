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
    verdicts = {each["measured"]["key"]: each["measured"]["verdict"] for each in done.summary["metrics"]}
    assert verdicts["mean_tpot_ms"] == "better"
    assert verdicts["p50_ttft_ms"] in ("better", "cannot tell")
    recordings = sorted(each.name for each in (tmp_path / "upgrade").glob("*.servetop"))
    assert recordings[0] == "a-001.servetop"
    assert len(recordings) == 2 * done.summary["pairs"]

    rows = [json.loads(line) for line in (tmp_path / "shape.jsonl").read_text().splitlines()]
    for arm in "ab":
        summary = servetop("summary", "--json", str(tmp_path / "upgrade" / f"{arm}-001.servetop")).summary
        assert summary["completed"] == len(rows) == 52
        assert summary["total_input_tokens"] == sum(row["input_length"] for row in rows)
        assert summary["total_output_tokens"] == sum(row["output_length"] for row in rows)
