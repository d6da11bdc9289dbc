"""The comparison with AIPerf: what a run of it shows on a curve, what its planner's lines claim, and the table."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.judgement import judge_search_aiperf
from tests.judgement.curve_server import CurveServer, draw_curve
from tests.judgement.judge_search_aiperf import Claim, Planner, adaptive_scale, equal_minutes, own, run, table

CURVE = replace(draw_curve("linear", 2), largest=20.5)
CLAIM = Claim(
    tool="servetop",
    curve=CURVE,
    number=2,
    noise=0.01,
    load=21.0,
    low=19.0,
    high=22.0,
    minutes=4.0,
    reason="found",
    resolved=True,
)


def test_a_run_shows_the_quantile_of_the_objective_after_its_warm_up() -> None:
    server = CurveServer(CURVE, noise=0.0, seed=1)
    assert run(server, 20, warmup=60.0, requests=2000) == pytest.approx(CURVE.limit, rel=0.1)
    assert server.now > 60.0 + 2000 / 20 * CURVE.median(20, noise=0.0)
    assert run(server, 41, warmup=60.0, requests=1000) > 1.1 * CURVE.limit


def test_the_planner_is_told_what_each_run_showed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "planner.py"
    program.write_text(DOUBLING, encoding="utf-8")
    monkeypatch.setattr(judge_search_aiperf, "PROGRAM", program)
    with Planner(sys.executable) as planner:
        claims = [planner.search("linear", 2, 0.01, seed=seed) for seed in (1, 2)]
    for claim in claims:
        assert claim.covers
        assert (claim.load, claim.reason) == (claim.low, "failed")
        assert claim.low == 2 ** (int(claim.curve.true).bit_length() - 1)
        assert claim.high == 2 * claim.low - 1


def test_a_planner_without_its_environment_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "planner.py"
    program.write_text("", encoding="utf-8")
    monkeypatch.setattr(judge_search_aiperf, "PROGRAM", program)
    with Planner(sys.executable) as planner, pytest.raises(RuntimeError, match="does its environment have aiperf"):
        planner.search("linear", 2, 0.0, seed=1)


def test_the_claim_of_servetop_is_that_of_its_search() -> None:
    claim = own("hockey stick", 0, 0.0, budget=300.0, seed=1)
    assert (claim.tool, claim.curve) == ("servetop", draw_curve("hockey stick", 0))
    assert claim.low <= (claim.load or 0) <= claim.high


def test_adaptive_scale_ends_at_the_first_window_that_fails() -> None:
    claims = [adaptive_scale("cliff", number, 0.0, seed=1) for number in (0, 2, 4)]
    for claim in claims:
        assert claim.low < claim.curve.true < claim.high + 41
        assert claim.load == claim.low
        assert claim.minutes % 0.5 == 0


def test_the_table_has_both_beside_each_other() -> None:
    other = replace(CLAIM, tool="AIPerf", load=30.0, low=30.0, high=31.0, minutes=60.0)
    lines = table([CLAIM, other], ["servetop", "AIPerf"])
    assert "| linear | 1 | 100 % | 100 % | 16 % | 4.0 | 0 % | 0 % | 3 % | 60.0 |" in lines
    assert lines[-1] == "| all | 1 | 100 % | 100 % | 16 % | 4.0 | 0 % | 0 % | 3 % | 60.0 |"


def test_at_equal_minutes_each_search_has_a_row() -> None:
    shorter = replace(CLAIM, tool="servetop, a tenth", load=None, low=20.0, high=60.0, minutes=2.0, resolved=False)
    assert equal_minutes([CLAIM, shorter, CLAIM])[2:] == [
        "| servetop | 2 | 100 % | 100 % | 16 % | 4.0 | 2 | 100 % |",
        "| servetop, a tenth | 1 | 100 % | 0 % | 200 % | 2.0 | 0 | – |",
    ]


DOUBLING = """\
import sys
for line in iter(sys.stdin.readline, ""):
    limit, load = float(line.split()[2]), 1
    while True:
        print(f"run {load} 0 300", flush=True)
        if float(sys.stdin.readline()) > limit:
            break
        load *= 2
    print(f"end {load // 2} {load} failed none", flush=True)
"""
"""A planner that doubles the load until a run fails."""
