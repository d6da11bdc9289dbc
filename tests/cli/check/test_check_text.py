"""The report on a terminal."""

import pytest

from servetop.cli.inspection.check import report_text
from tests.cli.check.reports import honesty, report

GATES = """\
run        pr.servetop
baseline   main.servetop
changed    engine.version: 0.9|0 → 0.9.1

8 req/s (stage 0)
                     baseline    run   change   95 % interval  limit
────────────────────────────────────────────────────────────────────
✓ output_throughput     1,203  1,198  −0.40 %  [−0.79, −0.01]    2 %
✗ p99_ttft_ms             420    525    +25 %      [+20, +30]   10 %
? mean_tpot_ms           31.0   31.6   +2.0 %     [−7.5, +13]    5 %
regression: p99_ttft_ms=10% at 8 req/s (stage 0): +25 %, 95 % interval [+20, +30], limit 10 %
"""


def test_a_limit_has_a_row_and_a_sentence_if_it_is_not_kept(capsys: pytest.CaptureFixture[str]) -> None:
    report_text(report())
    printed = capsys.readouterr().out
    assert printed.startswith(GATES)
    assert "\n✗ p99_ttft_ms<=500: a<b> & " in printed
    assert printed.endswith(
        "not compared  16 req/s (only in the run)\n\n4 checked: 1 kept, 1 regression, 1 not met, 1 cannot tell\n"
    )
    assert "\x1b" not in printed


def test_rules_alone_are_all_listed(capsys: pytest.CaptureFixture[str]) -> None:
    report_text(honesty())
    assert capsys.readouterr().out.splitlines()[2:] == [
        "Honesty of the figures",
        "✗ rule-0 at 8 req/s (stage 0): why",
        "? rule-1 at 8 req/s (stage 0): why",
        "✓ rule-2 at 8 req/s (stage 0): why",
        "– rule-3 at 8 req/s (stage 0): why",
        "",
        "3 checked: 1 kept, 1 broken, 1 cannot tell",
    ]
