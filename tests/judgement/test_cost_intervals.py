"""The judge of the intervals of costs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.judgement.cost_intervals import LOADS, main


def test_the_table_has_a_row_for_each_load_and_cost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- make judge-price -->\n\nold\n\n<!-- make judge-price -->\nafter\n")
    assert main(["--runs", "2", "--report", str(page)]) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    assert len(rows) == 1 + 3 * len(LOADS)
    assert rows[-1] in page.read_text()
    assert "old" not in page.read_text()
