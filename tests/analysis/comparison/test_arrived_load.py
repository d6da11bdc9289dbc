"""What arrived in a window, and how much that and its throughput vary by chance."""

import dataclasses
import math

import numpy as np
import pytest

from servetop.analysis.cells.stage_load import StageLoad
from servetop.analysis.comparison.arrived_load import ArrivedLoad, arrival_error, correlation_time
from servetop.analysis.comparison.compared_metrics import METRICS, metric_named
from servetop.analysis.comparison.comparison import ComparisonOptions, compare
from servetop.analysis.comparison.estimate import estimate
from servetop.analysis.comparison.slices import sliced
from servetop.analysis.comparison.stage_sample import Cumulative, StageSample
from servetop.analysis.statistics.batch_means import StandardError
from tests.analysis.comparison.samples import run, stage, steady_counter

SECONDS = 200.0


def drawn(seed: int, *, rate: float = 8.0, burstiness: float = 1.0, sigma: float = 1.0) -> StageSample:
    """A stage whose gaps and lengths are drawn; each token takes 0.1 s, however many requests are served."""
    generator = np.random.default_rng(seed)
    due = np.cumsum(generator.gamma(burstiness, 1 / rate / burstiness, int(4 * rate * SECONDS)))
    due = due[due < SECONDS]
    output = np.ceil(generator.lognormal(math.log(40.0), sigma, due.size))
    done = due + 0.1 * output
    at = np.arange(0.0, SECONDS + 0.25, 0.25)
    delivered = np.array([(output * np.clip((each - due) / (done - due), 0.0, 1.0)).sum() for each in at])
    return dataclasses.replace(
        stage(rate=rate, seconds=SECONDS),
        seed=seed,
        number=np.arange(due.size),
        due=due,
        sent=due,
        done_at=done,
        ok=np.ones(due.size, dtype=np.bool_),
        latencies={"ttft": np.full(due.size, 0.1), "tpot": np.full(due.size, 0.1), "e2el": done - due},
        prompt_tokens=np.full(due.size, 100.0),
        output_tokens=output,
        counters={"output_tokens": Cumulative(at, delivered)},
    )


def error_of(sample: StageSample) -> StandardError:
    found = sliced(sample)
    assert found is not None
    return arrival_error(found, sample.output_tokens[found.chosen])


def test_the_load_of_a_window_is_what_was_due_in_it() -> None:
    load = ArrivedLoad.of(stage(rate=8.0, seconds=100.0))
    assert load.requests == 800
    assert load.request_rate == pytest.approx(8.0)
    assert load.token_rate == pytest.approx(8.0 * (128 + 40))


def test_equal_stays_are_felt_for_half_their_length_and_heavy_tails_for_longer() -> None:
    assert correlation_time(stage()) == pytest.approx(0.5)
    stays = np.tile([1.0, 1.0, 1.0, 17.0], 200)
    sample = stage()
    heavy = dataclasses.replace(sample, done_at=sample.sent + stays)
    assert correlation_time(heavy) == pytest.approx((3 + 17**2) / 20 / 2)
    none = dataclasses.replace(sample, ok=np.zeros(800, dtype=np.bool_))
    assert correlation_time(none) == 0.0


def test_equal_gaps_and_lengths_arrive_without_error() -> None:
    assert error_of(stage()).value == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(("burstiness", "sigma"), [(1.0, 0.0), (1.0, 1.0), (0.25, 0.3)])
def test_the_error_of_the_arrivals_is_that_of_their_gaps_and_lengths(burstiness: float, sigma: float) -> None:
    errors = [error_of(drawn(seed, burstiness=burstiness, sigma=sigma)).value for seed in range(80)]
    expected = math.sqrt((1 / burstiness + math.expm1(sigma**2)) / (8.0 * SECONDS))
    assert math.sqrt(np.mean(np.square(errors))) == pytest.approx(expected, rel=0.25)


def test_a_closed_loop_and_a_saturated_engine_owe_their_throughput_to_the_engine() -> None:
    sample = drawn(1)
    closed = dataclasses.replace(sample, load=StageLoad(request_rate=math.inf, max_concurrency=8))
    assert error_of(closed).value == 0.0
    arrived = float(sample.output_tokens.sum()) / SECONDS
    saturated = {"output_tokens": steady_counter(np.arange(0.0, SECONDS + 0.25, 0.25), 0.7 * arrived)}
    assert error_of(dataclasses.replace(sample, counters=saturated)).value == 0.0


def test_throughput_varies_at_least_as_much_as_the_arrivals() -> None:
    smooth = {"output_tokens": steady_counter(np.arange(0.0, SECONDS + 0.25, 0.25), 600.0)}
    sample = dataclasses.replace(drawn(1), counters=smooth)
    found, metric = sliced(sample), metric_named("output_throughput")
    assert found is not None
    assert metric is not None
    estimated = estimate(found, metric)
    assert estimated is not None
    assert estimated.high_error == pytest.approx(600.0 * error_of(sample).value)


def test_other_draws_of_one_load_are_no_difference_in_throughput() -> None:
    options = ComparisonOptions(metrics=[each for each in METRICS if each.key == "output_throughput"])
    alarms, covered = 0, 0
    for seed in range(0, 120, 2):
        (compared,) = compare([run("a", drawn(seed))], [run("b", drawn(seed + 1))], options).stages
        (found,) = compared.metrics
        assert found.found is not None
        low, high = found.found.interval
        covered += low <= 0 <= high
        alarms += found.verdict in ("better", "worse")
    assert alarms <= 3
    assert covered >= 54


def test_equal_draws_are_compared_as_sharply_as_if_nothing_varied() -> None:
    sample = drawn(1)
    (compared,) = compare([run("a", sample)], [run("b", sample)]).stages
    found = compared.metric("output_throughput")
    assert found is not None
    assert found.found is not None
    assert compared.same_requests
    assert found.found.error == pytest.approx(0.0, abs=1e-9)
