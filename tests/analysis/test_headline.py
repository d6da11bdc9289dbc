"""The result of a comparison in one sentence."""

from __future__ import annotations

from servetop.analysis.comparison_report.headline import headline, overall_verdict
from tests.analysis.comparison_values import stage, value

LOSS = value("output_throughput", "worse")
SLOWER = value("p99_ttft_ms", "worse", difference=0.12, low=0.08, high=0.16)
SLOWEST = value("mean_ttft_ms", "worse", difference=0.30, low=0.2, high=0.4)
FASTER = value("mean_tpot_ms", "better", difference=-0.05, low=-0.06, high=-0.04)
EQUAL = value("p50_itl_ms", "no difference seen", difference=0.001)


def test_it_names_what_is_worse_what_is_equal_and_what_would_tell_the_rest() -> None:
    unclear = [value("p99_itl_ms", "cannot tell", more_starts=starts) for starts in (2, 4)]
    found = [stage(LOSS, SLOWER, EQUAL, *unclear)]
    assert headline("B", found) == (
        "B is worse: output tokens −3.1 % [−3.6, −2.6], TTFT p99 +12 % [+8.0, +16] at 8 req/s; "
        "no difference seen in 1 metric; undecided in 2: 4 more starts of each would decide all of them"
    )
    assert overall_verdict(found) == "worse"


def test_of_each_family_the_difference_of_most_margins_is_named() -> None:
    assert headline("C", [stage(SLOWER, SLOWEST)]) == "C is worse: TTFT mean +30 % [+20, +40] at 8 req/s and 1 more"


def test_each_difference_has_its_load_if_they_are_several() -> None:
    found = [stage(LOSS, EQUAL), stage(SLOWER, label="16 req/s")]
    assert headline("B", found) == (
        "B is worse: output tokens −3.1 % [−3.6, −2.6] at 8 req/s, TTFT p99 +12 % [+8.0, +16] at 16 req/s; "
        "no difference seen in 1 figure"
    )


def test_better_and_worse_are_named_both() -> None:
    found = [stage(LOSS, FASTER)]
    assert headline("B", found) == (
        "B is worse in output tokens −3.1 % [−3.6, −2.6] at 8 req/s, "
        "but better in TPOT mean −5.0 % [−6.0, −4.0] at 8 req/s"
    )
    assert overall_verdict(found) == "mixed"


def test_it_says_that_nothing_differs() -> None:
    assert headline("B", [stage(EQUAL, EQUAL)]) == "No difference seen in 2 metrics"
    assert overall_verdict([stage(EQUAL)]) == "no difference seen"


def test_it_says_that_nothing_can_be_told_and_for_how_many_that_is_known() -> None:
    unclear = value("p99_itl_ms", "cannot tell", more_seconds=7_800.0)
    hopeless = value("p99_e2el_ms", "cannot tell")
    assert headline("B", [stage(unclear)]) == "Cannot tell in 1 metric: 2 h 10 min more of each would decide it"
    assert headline("B", [stage(unclear, hopeless)]) == (
        "Cannot tell in 2 metrics: 2 h 10 min more of each would decide 1 of them"
    )
    assert headline("B", [stage(hopeless)]) == "Cannot tell in 1 metric"
    assert overall_verdict([stage(hopeless)]) == "cannot tell"


def test_a_load_without_a_rate_is_named_by_its_limit() -> None:
    closed = "C is worse: output tokens −3.1 % [−3.6, −2.6] at conc. 32"
    assert headline("C", [stage(LOSS, label="as fast as possible · conc. 32")]) == closed
    assert headline("C", [stage(LOSS, label="as fast as possible")]).endswith("−2.6] as fast as possible")
