"""The predicted largest load of a simulated engine lies between loads that predictions keep and miss."""

from __future__ import annotations

import dataclasses

import pytest

from servetop.core.config import RunConfig, StageConfig, WorkloadConfig
from servetop.core.config_values.search_config import MAX_CONCURRENCY, SearchConfig
from servetop.run.search.predicted_load import predicted_load
from servetop.simulator.predict.predict import PredictSpec, SimulatedEngine, predict_cell

ENGINE = SimulatedEngine(model="llama-2-7b", gpu="a100-40", engine_profile="vllm-0.2.1", settings={"max_num_seqs": 16})
WORKLOAD = WorkloadConfig(input_len=200, output_len=60)
OPEN = SearchConfig(slo=("ttft<400ms@90%",), low=0.1, high=1000.0)
CLOSED = SearchConfig(slo=("e2el<2s@90%",), over=MAX_CONCURRENCY, low=1.0, high=1000.0)


def predicted(
    search: SearchConfig, *, engine: SimulatedEngine = ENGINE, goodput: dict[str, float] | None = None
) -> float:
    found = predicted_load(RunConfig(workload=WORKLOAD, search=search, goodput=goodput or {}), engine)
    assert found is not None
    return found


def share_within(stage: StageConfig, **limit: float) -> float:
    spec = PredictSpec(workload=WORKLOAD, settings=ENGINE.settings, goodput=limit)
    share = predict_cell(spec, dataclasses.replace(stage, num_prompts=600)).share_within
    assert share is not None
    return share


def test_half_of_a_predicted_rate_is_kept_and_twice_that_rate_is_not() -> None:
    rate = predicted(OPEN)
    assert share_within(StageConfig(request_rate=rate / 2), ttft=0.4) > 0.9
    assert share_within(StageConfig(request_rate=rate * 2), ttft=0.4) < 0.9


def test_half_of_the_predicted_users_are_kept_and_twice_as_many_are_not() -> None:
    users = int(predicted(CLOSED))
    assert users == predicted(CLOSED)
    assert share_within(StageConfig(max_concurrency=users // 2), e2el=2.0) > 0.9
    assert share_within(StageConfig(max_concurrency=users * 2), e2el=2.0) < 0.9


def test_an_engine_that_is_twice_as_fast_keeps_twice_the_rate() -> None:
    fast = dataclasses.replace(ENGINE, settings={**ENGINE.settings, "time_scale": 0.5})
    halved = dataclasses.replace(OPEN, slo=("ttft<200ms@90%",), low=0.2)
    assert predicted(halved, engine=fast) == pytest.approx(2 * predicted(OPEN), rel=0.01)


def test_a_rate_at_which_the_queue_grows_is_too_high_whatever_the_limit() -> None:
    patient = dataclasses.replace(OPEN, slo=("ttft<1000s@90%",))
    rate = predicted(patient)
    assert predict_cell(
        PredictSpec(workload=WORKLOAD, settings=ENGINE.settings), StageConfig(request_rate=2 * rate, num_prompts=600)
    ).saturated


@pytest.mark.parametrize(
    ("slo", "goodput"),
    [
        ("mean_ttft<400ms, error_rate<1%", {}),
        ("p90_tpot<20ms", {}),
        ("p90_itl<20ms", {}),
        ("mean_itl<20ms", {}),
        ("goodput>90%", {"ttft": 0.4}),
    ],
)
def test_every_kind_of_objective_bounds_the_load(slo: str, goodput: dict[str, float]) -> None:
    large = dataclasses.replace(ENGINE, settings={})
    assert 1.0 < predicted(dataclasses.replace(CLOSED, slo=(slo,)), engine=large, goodput=goodput) < CLOSED.high


def test_the_smallest_load_of_several_tiers_is_predicted() -> None:
    both = dataclasses.replace(CLOSED, slo=("e2el<100s@90%", "e2el<2s@90%"))
    assert predicted(both) == predicted(CLOSED)


def test_a_prediction_stays_within_the_loads_of_the_search() -> None:
    assert predicted(dataclasses.replace(OPEN, high=0.5)) == 0.5
    assert predicted(dataclasses.replace(OPEN, slo=("ttft<1ms@90%",))) == OPEN.low


@pytest.mark.parametrize(
    ("model", "workload"),
    [("llama-2-70b", WORKLOAD), ("llama-2-7b", WorkloadConfig(input_len=100_000, output_len=60))],
)
def test_nothing_is_predicted_of_a_run_that_cannot_start(model: str, workload: WorkloadConfig) -> None:
    engine = dataclasses.replace(ENGINE, model=model)
    assert predicted_load(RunConfig(workload=workload, search=OPEN), engine) is None
