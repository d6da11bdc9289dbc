"""The simulator reproduces the published tables with the required accuracy."""

from __future__ import annotations

import pytest

from servetop.cli.configuration.prediction import predict_specs
from servetop.simulator.validate.validate import validate
from servetop.simulator.validate.validation_tables import Table, TableRow, at_most, markdown, report


@pytest.fixture(scope="module")
def tables() -> list[Table]:
    return validate(predict_specs)


@pytest.mark.parametrize("name", ["table4", "table14", "table5", "table8", "table11", "table12", "table13"])
def test_every_target_of_the_table_is_met(tables: list[Table], name: str) -> None:
    table = next(table for table in tables if table.name == name)
    missed = [f"{target.text}: {target.found}" for target in table.targets if not target.met]
    assert not missed


def test_the_report_marks_calibrated_rows_and_passed_targets(tables: list[Table]) -> None:
    data = report(tables)
    assert data["passed"]
    first = data["tables"][0]
    assert [row["cell"] for row in first["rows"] if not row["held_out"]] == ["batch 128, 64 QPS"]
    assert len(first["rows"]) == 28
    assert first["mean_error"] <= first["max_error"]


def test_a_missed_target_fails_the_report_and_shows_in_the_text() -> None:
    row = TableRow(cell="batch 1", measured=100.0, simulated=150.0)
    table = Table(
        name="t",
        title="T",
        unit="tokens/s",
        rows=(row,),
        targets=(at_most("largest error", abs(row.error), limit=0.1),),
    )
    assert not report([table])["passed"]
    assert "MISSED: largest error at most 10.0% (50.00%)" in markdown([table])


def test_calibrated_and_suspect_cells_do_not_count() -> None:
    fitted = TableRow(cell="a", measured=1.0, simulated=2.0, held_out=False)
    suspect = TableRow(cell="b", measured=1.0, simulated=3.0, suspect=True)
    held_out = TableRow(cell="c", measured=1.0, simulated=1.1)
    table = Table(name="t", title="T", unit="u", rows=(fitted, suspect, held_out), targets=())
    assert table.max_error == pytest.approx(0.1)
