"""The report of a comparison in 80 columns, and as Markdown."""

from __future__ import annotations

import pytest

from servetop.analysis.comparison.report_types import ComparisonReport, OtherCause
from servetop.analysis.comparison.start_spread import SAME
from servetop.analysis.manifest.manifest_diff import DifferenceKind, ManifestDifference
from servetop.cli.tables import SanitizingConsole
from servetop.reports.comparison.comparison_markdown import markdown_lines
from servetop.reports.comparison.comparison_text import comparison_parts, stage_text
from tests.analysis.comparison_values import comparison, report, stage, value

LOSS = value("output_throughput", "worse", a=12_880.0, b=12_480.0)
UNCLEAR = value("p99_ttft_ms", "cannot tell", a=59_912.0, b=65_912.0, low=-0.124, high=2.1, more_seconds=7_800.0)
USAGE = value("mean_kv_usage", "no difference seen", a=0.42, b=0.421, difference=0.001, low=0.0, high=0.002)
CAUSE = OtherCause(
    kind="cache", text="the cache of B was warm", metrics=("ttft",), severity="warning", pairs=2, of_pairs=3
)
MISSING = value("request_goodput", "cannot tell", difference=None, a=None, note="not measured in B")


def printed(what: ComparisonReport, *, width: int = 80) -> list[str]:
    console = SanitizingConsole(width=width, highlight=False)
    with console.capture() as captured:
        for part in comparison_parts(what, width=width):
            console.print(part)
    return [line.rstrip() for line in captured.get().splitlines()]


def table(lines: list[str]) -> list[str]:
    start = next(number for number, line in enumerate(lines) if "verdict" in line)
    return lines[start : start + 6]


def test_a_stage_is_a_table_that_fits_into_80_columns() -> None:
    assert table(printed(report(comparison(stage(LOSS, UNCLEAR, USAGE, MISSING))))) == [
        "                    A       B     B − A  95 % interval  verdict",
        "────────────────────────────────────────────────────────────────────────────",
        "output tok/s   12,880  12,480    −3.1 %   [−3.6, −2.6]  ▼ worse",
        "TTFT p99 ms    59,912  65,912    −3.1 %    [−12, +210]  ? 2 h 10 min more",
        "KV usage       42.0 %  42.1 %  +0.10 pt     [0, +0.20]  = no difference seen",
        "goodput req/s       –    96.9         –              –  ? not measured in B",
    ]


def test_with_more_columns_a_verdict_that_cannot_be_told_says_so() -> None:
    lines = printed(report(comparison(stage(UNCLEAR))), width=100)
    assert any(line.endswith("? cannot tell: 2 h 10 min more") for line in lines)


def test_the_order_is_what_is_compared_what_differs_the_result_and_the_stages() -> None:
    compared = comparison(
        stage(LOSS, unsteady="throughput still rises", not_measured=("joules_per_output_token",)),
        warnings=("B is still running",),
        differences=(ManifestDifference(key="engine.version", kind=DifferenceKind.SETTING, a="0.9.1", b=None),),
        unknown=("gpu.driver",),
        other_causes=(CAUSE,),
        only_a=("16 req/s",),
    )
    lines = printed(report(compared), width=200)
    expected = [
        "A  run A · vllm 0.9.1 · llama-2-7b · seed 1 · 1 start · 60.0 s · 480 requests · 2026-11-23 18:06 UTC",
        "B  run B · vllm 0.9.1 · llama-2-7b · seed 1 · 1 start · 60.0 s · 480 requests · 2026-11-23 18:06 UTC",
        "warning: B is still running",
        "What differs between A and B",
        "engine.version  0.9.1  not recorded",
        "recorded of one only: gpu.driver",
        "Other causes than the change",
        "the cache of B was warm (in 2 of 3 pairs of recordings)",
        "B is worse",
        "60.0 s, 480 and 482 requests, 1 start each, starts assumed to vary by 1 %, errors within the "
        "runs, not measured: energy; not steady: throughput still rises",
        "only in A: 16 req/s",
    ]
    assert [line for line in lines if line in expected] == expected


@pytest.mark.parametrize(
    ("basis", "text"),
    [
        ("paired blocks", "1 start each, errors within the runs, the same requests compared pairwise"),
        ("starts", "3 starts of A, 2 of B, errors from the spread between starts or repetitions"),
        ("paired starts", "2 starts each, errors from the spread between starts, paired by seed"),
    ],
)
def test_what_the_errors_of_a_stage_rest_on_is_said(basis: str, text: str) -> None:
    starts = {"paired blocks": (1, 1), "starts": (3, 2), "paired starts": (2, 2)}[basis]
    found = stage(value("output_throughput", "worse", basis=basis), starts_a=starts[0], starts_b=starts[1])
    assert text in stage_text(found, letter="B", start_spread=SAME)


def test_a_stage_with_too_few_requests_has_no_table() -> None:
    lines = printed(report(comparison(stage(), stage(LOSS, label="16 req/s"))))
    assert "too few requests to compare" in lines
    assert sum("verdict" in line for line in lines) == 1


def test_several_configurations_are_each_compared_with_the_first() -> None:
    lines = printed(report(comparison(stage(LOSS)), comparison(stage(LOSS), letter="C")))
    assert [line for line in lines if "compared with" in line] == ["B compared with A", "C compared with A"]
    assert any("C − A" in line for line in lines)


def test_markdown_begins_with_the_result_and_escapes_texts() -> None:
    differing = (ManifestDifference(key="engine.args.x", kind=DifferenceKind.SETTING, a="a|b", b="1"),)
    lines = markdown_lines(report(comparison(stage(LOSS, UNCLEAR), differences=differing)))
    assert lines[0] == "**B is worse**"
    assert "| engine.args.x | a\\|b | 1 |" in lines
    assert "| output tok/s | 12,880 | 12,480 | −3.1 % | \\[−3.6, −2.6\\] | ▼ worse |" in lines
    assert lines[lines.index("| metric | A | B | difference | 95 % interval | verdict |") + 1] == (
        "| :-- | --: | --: | --: | --: | :-- |"
    )
    assert any(line.endswith("| ? cannot tell: 2 h 10 min more |") for line in lines)
