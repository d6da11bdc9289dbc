"""`servetop plot` prints charts as text, with colours on a terminal only, and refuses what a recording lacks."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from servetop.cli.main import main
from servetop.cli.options.tool_options import PLOT_METRICS
from servetop.core.config import StageConfig
from servetop.reports.page.chart_specs import CHARTS
from servetop.reports.page.terminal_charts import LATENCY
from tests.cli.terminal import Terminal
from tests.harness import SLOW_MACHINE, wait_for
from tests.judgement.brief_recordings import record_briefly


def test_the_option_names_every_chart() -> None:
    assert (*(each.name for each in CHARTS), LATENCY) == PLOT_METRICS


def test_the_main_charts_are_printed_without_colour_into_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plot", "sample"]) == 0
    printed = capsys.readouterr()
    assert "\x1b" not in printed.out + printed.err
    assert max(map(len, printed.out.splitlines())) == 80
    assert "TTFT: time to first token\n" in printed.out


def test_only_the_charts_that_are_asked_for_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plot", "sample", "--metric", "tpot", "--metric", "e2el", "--width", "60"]) == 0
    out = capsys.readouterr().out
    titles = [line for line in out.splitlines() if line in {each.title for each in CHARTS}]
    assert titles == ["TPOT: time per output token", "E2EL: end-to-end latency"]
    assert max(map(len, out.splitlines())) == 60


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["sample", "--metric", "ttfft"], "invalid --metric ttfft: use load, tokens, ttft, tpot, queue, kv, itl"),
        (["sample", "--metric", "gpu"], "overload has no values for --metric gpu: leave it out, or name another"),
        (["sample", "--metric", "gpu", "--metric", "ttft"], "has no values for --metric gpu: leave it out"),
        (["sample", "--width", "20"], "invalid --width 20: use a whole number from 40 to 1000"),
    ],
)
def test_what_cannot_be_drawn_is_one_line(words: list[str], error: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plot", *words]) == 2
    printed = capsys.readouterr()
    assert error in printed.err
    assert (printed.out, printed.err.count("\n")) == ("", 1)


def test_latency_against_load_needs_two_loads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = record_briefly(tmp_path / "one.servetop", StageConfig(request_rate=20.0, duration=5.0))
    assert main(["plot", str(path)]) == 0
    assert "Latency of each stage" not in capsys.readouterr().out
    assert main(["plot", str(path), "--metric", "latency"]) == 2
    assert "no values for --metric latency (it needs two loads)" in capsys.readouterr().err


@pytest.mark.parametrize(("settings", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_lines_have_colours_on_a_terminal_unless_there_is_no_color(settings: dict[str, str], coloured: bool) -> None:
    argv = [sys.executable, "-m", "servetop", "plot", "sample", "--metric", "ttft"]
    with Terminal.run(argv, os.environ | settings) as terminal:
        wait_for(lambda: "p99\x1b" in terminal.text or "p99\r\n" in terminal.text, seconds=20, what="the legend")
        assert terminal.process.wait(20 * SLOW_MACHINE) == 0
    assert ("\x1b[36m•" in terminal.text) is coloured
    plain = re.sub(r"\x1b\[[0-9;]*m", "", terminal.text)
    assert max(map(len, plain.splitlines())) == 120
