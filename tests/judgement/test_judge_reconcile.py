"""Rows and conclusion of the table of reconciled clients follow from the waterfalls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.judgement.client_commands import LeftOutError
from tests.judgement.judge_reconcile import TITLES, Measured, conclusion, reconciled, rows_of, table

RESULTS = Path(__file__).parents[1] / "corpus" / "results"


def measured(name: str) -> Measured:
    return Measured(name=name, load="8 req/s", result=Path(name), truth=Path(f"{name}.servetop"))


def waterfall(unexplained: float, *, within: bool | None = True) -> dict[str, Any]:
    steps = [
        {"kind": "definition", "effect": 2.0}, {"kind": "window", "effect": None}, {"kind": "client", "effect": -11.0},
        {"kind": "unexplained", "effect": unexplained},
    ]  # fmt: skip
    return {"a": 105.0, "b": 95.0, "steps": steps, "unexplained_percent": unexplained, "within_chance": within}


def test_a_row_has_the_difference_its_largest_steps_and_what_is_left() -> None:
    blind, seeing = {"mean_ttft_ms": waterfall(-10.0, within=False)}, {"mean_ttft_ms": waterfall(-1.0)}
    rows = rows_of(measured("AIPerf"), measured("servetop"), blind, seeing)
    expected = (
        "| AIPerf, servetop | 8 req/s | TTFT | -10.0 % | client -11.0 %; definition +2.0 % | -10.00 % ✗ | -1.00 % |"
    )
    assert rows[0] == expected
    assert rows[1] == "| AIPerf, servetop | 8 req/s | TPOT | – | – | – | – |"
    assert len(rows) == len(TITLES)


def test_the_conclusion_counts_the_figures_that_keep_the_target() -> None:
    found = [{"mean_ttft_ms": waterfall(-1.0), "mean_itl_ms": waterfall(2.5)}]
    assert conclusion(found) == (
        "1 of 2 figures of 1 pair have at most 1 % unexplained (the target); the largest rest is 2.50 %"
    )


def test_the_table_of_a_client_with_shared_prompts_says_what_the_server_counted(tmp_path: Path) -> None:
    lines = table(4.0, ["servetop"], tmp_path / "results")
    assert "Tokens of a request as the server counted them: servetop 128 prompt and 64 output." in lines
    assert lines[-1].startswith("With the server's times and the same prompts 0 of 0 figures of 0 pairs")


def test_a_real_pair_is_reconciled_by_the_command_and_a_bad_one_is_left_out() -> None:
    one, other = (
        Measured(name=name, load="", result=RESULTS / f"vllm-{name}.json", truth=Path("none.servetop"))
        for name in ("rate", "closed-loop")
    )
    assert set(reconciled(one, other, truths=False)) == {"output_throughput", "request_throughput"}
    with pytest.raises(LeftOutError, match="none"):
        reconciled(one, other, truths=True)
