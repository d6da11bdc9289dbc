"""The result of a comparison in one sentence."""

from __future__ import annotations

from servetop.analysis.comparison.report_types import RunPairsAdvice
from servetop.reports.comparison.headline import headline, overall_verdict
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


ADVICE = RunPairsAdvice(
    command="servetop run-pairs a b", pairs_low=3, pairs_high=8, seconds_low=117.0, seconds_high=312.0
)
SHORT = [
    value("output_throughput", "cannot tell", reason="too short", difference=0.25, low=-0.02, high=0.6),
    value("p50_ttft_ms", "cannot tell", reason="too short", difference=-0.97, low=-0.999, high=-0.345),
    value("p99_ttft_ms", "cannot tell", reason="too short", difference=-0.99, low=-1.0, high=None),
]
TEN_SECONDS = {"seconds_a": 9.91, "seconds_b": 9.95, "requests_a": 174, "requests_b": 174, "needed_seconds": 40.0}


def test_short_runs_say_what_was_measured_what_was_seen_and_what_to_do() -> None:
    assert headline("B", [stage(*SHORT, **TEN_SECONDS)], ADVICE) == (
        "Too short to compare (9.91 s and 174 requests of each); "
        "seen: output tokens +25 % [−2.0, +60], TTFT p50 −97 % [−100, −34] at 8 req/s: "
        "measure 60 s or more of each, or alternate both with run-pairs (about 2 to 6 min)"
    )


def test_what_is_clear_in_short_runs_comes_first() -> None:
    worse, _, rest = headline("B", [stage(LOSS, *SHORT, **TEN_SECONDS)], ADVICE).partition("; ")
    assert worse == "B is worse: output tokens −3.1 % [−3.6, −2.6] at 8 req/s"
    assert rest.startswith(
        "too short to compare in the other 3 metrics (9.91 s and 174 requests of each): measure 60 s"
    )


def test_without_the_same_load_in_both_there_is_no_word_of_run_pairs() -> None:
    assert headline("B", [stage(*SHORT, **TEN_SECONDS)]).endswith(": measure 60 s or more of each")


def test_more_seconds_of_a_load_that_piles_up_would_not_tell() -> None:
    grows = "in flight grows by 2 requests/s: the offered load is above what the engine serves"
    piling = value("p50_ttft_ms", "cannot tell", reason="not steady")
    short = stage(*SHORT, **TEN_SECONDS, unsteady=grows)
    assert headline("B", [short], ADVICE).endswith(": alternate both with run-pairs (about 2 to 6 min)")
    assert headline("B", [stage(piling, unsteady=grows)], ADVICE) == (
        f"Not steady ({grows}); seen: TTFT p50 −3.1 % [−3.6, −2.6] at 8 req/s: "
        "alternate both with run-pairs (about 2 to 6 min)"
    )
    assert headline("B", [stage(piling, unsteady=grows)]).endswith(": measure a load at which it is")


def test_no_time_above_some_hours_is_named() -> None:
    beyond = value("p99_itl_ms", "cannot tell", more_than="4 h")
    near = value("p90_itl_ms", "cannot tell", more_seconds=780.0)
    assert headline("B", [stage(beyond)], ADVICE) == (
        "Cannot tell in 1 metric: more than 4 h of each would decide it: use run-pairs (about 2 to 6 min)"
    )
    assert headline("B", [stage(beyond, near)]) == (
        "Cannot tell in 2 metrics: 13 min more of each would decide 1 of them, "
        "more than 4 h of each would decide 1 of them: use run-pairs"
    )
