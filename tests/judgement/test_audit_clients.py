"""The table of audited clients has a row for each load, and its section is added to a page once."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.judgement import audit_clients
from tests.judgement.audit_clients import COLUMNS, audit, row
from tests.judgement.client_commands import CLIENTS, OUTPUT, LeftOutError, loads

ERRORS = {"arrival_rate": 0.5, "total_output_tokens": 0.0, "p99_ttft_ms": -1.234}
REPORT: dict[str, Any] = {
    "figures": [{"name": name, "error_percent": ERRORS.get(name)} for name in COLUMNS.values()],
    "request_errors": [{"name": "ttft", "p50": 0.25, "p99": 1.5}],
    "result": {"version": "1.2"},
    "server": {"lag_p99_ms": 0.4},
}


def test_a_row_has_the_errors_of_a_load() -> None:
    found = row("bench", loads(10.0)[0], REPORT)
    assert found == "| bench 1.2 | 8 req/s | +0.50 % | – | +0.00 % | – | -1.23 % | – | – | – | 0.25 | 1.50 | 0.40 |"


def test_servetop_is_audited_with_both_loads() -> None:
    for load in loads(1.0):
        report = audit(CLIENTS["servetop"], load)
        tokens = next(each for each in report["figures"] if each["name"] == "total_output_tokens")
        assert tokens["truth"] == tokens["client"] == load.count * OUTPUT


def test_a_client_that_fails_is_left_out() -> None:
    with pytest.raises(LeftOutError, match="exited with status 3"):
        audit(
            lambda _, folder: ([sys.executable, "-c", "raise SystemExit(3)", "{url}"], folder / "none"), loads(1.0)[0]
        )


def test_the_section_is_added_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Page\n")
    monkeypatch.setattr(audit_clients, "table", lambda *_: ["| a |"])
    monkeypatch.setattr(sys, "argv", ["audit_clients", "--report", str(page)])
    for _ in range(2):
        audit_clients.main()
    assert page.read_text().count("## Clients compared") == page.read_text().count("| a |") == 1
