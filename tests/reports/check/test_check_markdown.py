"""The report as Markdown."""

from servetop.reports.check.check_markdown import report_markdown
from servetop.reports.markdown import escaped
from tests.cli.check.reports import HOSTILE, honesty, report


def test_every_item_has_a_row_of_its_table() -> None:
    lines = report_markdown(report()).splitlines()
    assert lines[0] == "### servetop check: 4 checked: 1 kept, 1 regression, 1 not met, 1 cannot tell"
    assert "pr.servetop against main.servetop" in lines
    assert "- changed: engine.version: 0.9\\|0 → 0.9.1" in lines
    assert "- not compared: 16 req/s (only in the run)" in lines
    rows = [line for line in lines if line.startswith("|")]
    limits, others = rows[:5], rows[5:]
    assert (
        "| ✅ kept | output\\_throughput | 8 req/s (stage 0) | 1,203 | 1,198 | −0.40 % | [−0.79, −0.01] | 2 % |"
        in limits
    )
    assert [line.split(" | ")[0] for line in limits[2:]] == ["| ✅ kept", "| ❌ regression", "| ❔ cannot tell"]
    assert [line.split(" | ")[0] for line in others[2:]] == ["| ❌ not met", "| ❌ broken"]
    unescaped = [line.replace("\\|", "").count("|") for line in rows]
    assert unescaped == [9] * len(limits) + [4] * len(others)


def test_texts_of_recordings_do_not_format() -> None:
    assert escaped(HOSTILE).startswith("a\\<b\\> & \"c\" 'd' \\| \\`e\\` \\*f\\* \\[g\\](h) 100% ::error::i j,k:l")
    assert "\x1b" not in escaped(HOSTILE)
    assert len(report_markdown(report()).splitlines()) == len(report_markdown(report()).split("\n")) - 1


def test_a_report_of_rules_alone_has_one_table() -> None:
    lines = report_markdown(honesty()).splitlines()
    assert [line.split(" | ")[0] for line in lines if line.startswith("| ")] == [
        "| ", "| ---", "| ❌ broken", "| ❔ cannot tell", "| ✅ kept", "| ➖ not applicable",
    ]  # fmt: skip
