"""Arrival processes by name: bursts, spacing, sinusoids and ramps."""

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from servetop.core.config import StageConfig, WorkloadConfig
from servetop.core.errors import UsageError
from servetop.workload.arrivals.arrival_process import AllAtOnce, ArrivalProcess, ConstantArrivals
from servetop.workload.arrivals.arrival_spec import ARRIVAL_PROCESSES, arrivals_for, parse_arrivals, seeded_arrivals
from servetop.workload.arrivals.rate_curves import CurvedArrivals, RampCurve, SineCurve
from servetop.workload.stages.stage_run import StageRun
from servetop.workload.validation import check_load

EVEN = seeded_arrivals(burstiness=math.inf, seed=(0,))
PURE_PROCESSES = sorted(set(ARRIVAL_PROCESSES) - {"trace"})


def first(process: ArrivalProcess, count: int) -> Sequence[float]:
    return list(itertools.islice(process.due_times(), count))


def of(text: str, rate: float) -> ArrivalProcess:
    return arrivals_for(rate, burstiness=1.0, seed=(3,), spec=parse_arrivals(text))


@given(st.sampled_from(PURE_PROCESSES), st.floats(0.05, 2000), st.integers(0, 2**31))
def test_every_process_gives_ascending_times_fixed_by_the_seed(text: str, rate: float, seed: int) -> None:
    process = arrivals_for(rate, burstiness=1.0, seed=(seed,), spec=parse_arrivals(text))
    times = first(process, 300)
    assert times[0] >= 0
    assert all(before <= after for before, after in itertools.pairwise(times))
    assert first(process, 300) == times


@pytest.mark.parametrize("text", ["gamma", "poisson", "constant", "burst", "sinusoid:period=5,amplitude=0.9"])
def test_every_process_keeps_its_mean_rate(text: str) -> None:
    times = np.array(first(of(text, 40.0), 20_000))
    assert (times < 400).sum() / 400 == pytest.approx(40.0, rel=0.03)


def test_a_burst_is_all_requests_of_a_second_at_its_start() -> None:
    assert first(of("burst", 3.0), 7) == [0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 2.0]
    assert first(of("burst:period=2", 1.5), 7) == [0.0, 0.0, 0.0, 2.0, 2.0, 2.0, 4.0]


def test_in_process_bursts_have_equal_sizes_and_the_mean_rate() -> None:
    assert first(of("in-process-burst", 3.0), 4) == [0.0, 0.0, 0.0, 1.0]
    assert first(of("in-process-burst", 1.5), 3) == pytest.approx([0.0, 0.0, 4 / 3])
    assert first(of("in-process-burst", 0.5), 3) == [0, 2, 4]


def test_bursts_of_a_fractional_rate_alternate() -> None:
    assert first(of("burst", 2.5), 10) == [0, 0, 0, 1, 1, 2, 2, 2, 3, 3]
    assert first(of("burst", 0.5), 3) == [0, 2, 4]


def test_spaced_requests_are_whole_milliseconds_apart() -> None:
    assert first(of("spaced", 32.0), 4) == [0.0, 0.031, 0.062, 0.093]
    assert first(of("spaced", 5000.0), 3) == [0.0, 0.001, 0.002]


def test_a_sinusoidal_rate_is_high_in_the_first_half_of_its_period_and_low_in_the_second() -> None:
    curve = SineCurve(mean=100.0, period=10.0, amplitude=0.5)
    times = np.array(first(CurvedArrivals(ConstantArrivals(1.0), curve), 1000))
    assert (times < 5).sum() == pytest.approx(500 + 100 * 0.5 * 10 / math.pi, abs=2)
    assert times[-1] == pytest.approx(10.0, abs=0.05)
    assert [curve.rate_at(2.5), curve.rate_at(7.5)] == pytest.approx([150, 50])


@given(
    st.floats(0.1, 500),
    st.floats(0.1, 500),
    st.floats(0.5, 600),
    st.booleans(),
    st.lists(st.floats(0, 1e5), min_size=2),
)
@example(0.1, 0.10000000000000002, 7.0, True, [0.0, 1.0])
def test_times_on_a_ramp_ascend_within_the_bounds_of_its_rates(
    start: float, end: float, seconds: float, exponential: bool, expected: list[float]
) -> None:
    curve = RampCurve(start=start, end=end, seconds=seconds, exponential=exponential)
    low, high = min(start, end), max(start, end)
    for amount in expected:
        at = curve.when(amount)
        assert amount / high - 1e-6 <= at * (1 + 1e-6) + 1e-9
        assert at <= amount / low * (1 + 1e-6) + 1e-6
        assert low * (1 - 1e-9) <= curve.rate_at(at) <= high * (1 + 1e-9)


@pytest.mark.parametrize("strategy", ["linear", "exponential"])
def test_a_stage_ramps_over_its_duration(strategy: str) -> None:
    config = StageConfig(ramp_from=2.0, request_rate=32.0, ramp_strategy=strategy, duration=10.0)
    stage = StageRun(0, config, started_at=100.0, arrivals=EVEN)
    assert stage.rate_now(100.0) == 2.0
    assert stage.rate_now(105.0) == pytest.approx(17.0 if strategy == "linear" else 8.0)
    count = 0
    while stage.next_due() < stage.end():
        stage.issue()
        count += 1
    assert count == pytest.approx(170 if strategy == "linear" else 30 * 10 / math.log(16), abs=1)
    assert stage.rate_now(110.0) == 32.0


@pytest.mark.parametrize("strategy", ["linear", "exponential"])
def test_a_ramp_without_a_duration_ends_with_its_last_request(strategy: str) -> None:
    config = StageConfig(ramp_from=4.0, request_rate=16.0, ramp_strategy=strategy, num_prompts=200)
    stage = StageRun(0, config, started_at=0.0, arrivals=EVEN)
    last = [stage.issue().at for _ in range(200)][-1]
    assert 15.5 <= stage.rate_now(last) <= 16.0


def test_holding_a_stage_holds_its_ramp_and_continuing_resumes_it() -> None:
    config = StageConfig(ramp_from=10.0, request_rate=30.0, duration=10.0)
    stage = StageRun(0, config, started_at=0.0, arrivals=EVEN)
    stage.hold(5.0)
    assert stage.rate_now(7.0) == stage.rate_now(60.0) == pytest.approx(20.0)
    stage.continue_(60.0)
    assert stage.rate_now(60.0) == pytest.approx(20.0)
    assert stage.rate_now(62.5) == pytest.approx(25.0)
    assert stage.end() == 65.0


def test_setting_a_rate_ends_the_ramp() -> None:
    stage = StageRun(0, StageConfig(ramp_from=1.0, request_rate=9.0, duration=8.0), started_at=0.0, arrivals=EVEN)
    stage.set_rate(50.0, 2.0)
    assert [stage.issue().at for _ in range(3)] == [2.0, 2.02, 2.04]
    assert stage.rate_now(7.0) == 50.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bursts", "unknown 'bursts': did you mean burst"),
        ("burst:size=3", "unknown 'size' in 'burst:size=3': burst takes period"),
        ("constant:x=1", "constant takes no numbers"),
        ("sinusoid:amplitude=2", "'amplitude=2': give a number above 0 to 1"),
        ("sinusoid:period=soon", "'period=soon': give a number above 0"),
        ("sinusoid:period=nan", "give a number"),
    ],
)
def test_an_invalid_arrival_process_is_rejected_in_one_line(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        parse_arrivals(text)
    assert "\n" not in str(caught.value)


@given(st.text())
def test_any_text_is_an_arrival_process_or_a_usage_error(text: str) -> None:
    try:
        spec = parse_arrivals(text)
    except UsageError:
        return
    assert spec.name in ARRIVAL_PROCESSES


@pytest.mark.parametrize(
    ("workload", "stage", "message"),
    [
        ({"arrivals": "spaced"}, {"request_rate": 2000.0, "duration": 1.0}, "less than 1 ms apart"),
        ({"arrivals": "burst"}, {"request_rate": 9.0, "ramp_from": 1.0, "duration": 1.0}, "burst cannot follow a ramp"),
        ({"arrivals": "all-at-once"}, {"request_rate": 9.0, "duration": 1.0}, "without end"),
        ({"arrivals": "burst", "burstiness": 2.0}, {"request_rate": 9.0}, "--burstiness applies to gamma"),
        ({"think_time": "2"}, {"request_rate": 9.0, "duration": 1.0}, "--think-time is for closed loops"),
        ({"think_time": "long"}, {"max_concurrency": 2}, "unknown 'long'"),
        ({"think_time": "2 weeks"}, {"max_concurrency": 2}, "is not a duration"),
    ],
)
def test_incompatible_options_are_rejected(workload: dict[str, object], stage: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        check_load(WorkloadConfig(**workload), [StageConfig(**stage)])  # type: ignore[arg-type]


def test_an_infinite_rate_is_all_at_once_for_every_process() -> None:
    assert of("burst", math.inf) == of("poisson", math.inf) == AllAtOnce()
