"""Annotations for GitHub Actions."""

from servetop.reports.check.annotations import annotation_lines
from servetop.reports.check.check_report import CheckReport
from tests.cli.check.reports import HOSTILE, honesty, report

ESCAPED = HOSTILE.replace("%", "%25").replace("\n", "%0A")


def test_what_is_not_kept_is_annotated_on_one_line_each() -> None:
    assert annotation_lines(report())[:1] + annotation_lines(report())[3:] == [
        f"::warning title=servetop check::{ESCAPED}",
        f"::error title=servetop%3A p99_ttft_ms<=500::not met: {ESCAPED}",
        f"::warning title=servetop%3A client-bound at 8 req/s (stage 0)::broken: {ESCAPED}",
    ]


def test_a_regression_is_an_error_and_what_cannot_be_told_a_warning() -> None:
    lines = annotation_lines(report())[1:3]
    assert lines[0] == (
        "::error title=servetop%3A p99_ttft_ms=10%25 at 8 req/s (stage 0)"
        "::regression: +25 %25, 95 %25 interval [+20, +30], limit 10 %25"
    )
    assert lines[1].startswith("::warning title=servetop%3A mean_tpot_ms=5%25 at 8 req/s (stage 0)::cannot tell: ")


def test_a_comma_or_colon_in_a_title_does_not_end_it() -> None:
    item = honesty().items[0]
    renamed = type(item)(kind=item.kind, name="a,b::c", outcome=item.outcome, text="why")
    assert annotation_lines(CheckReport(runs=(), items=[renamed])) == [
        "::error title=servetop%3A a%2Cb%3A%3Ac::broken: why"
    ]


def test_rules_that_are_kept_or_do_not_apply_have_no_annotation() -> None:
    assert [line.partition(" ")[0] for line in annotation_lines(honesty())] == ["::error", "::warning"]
