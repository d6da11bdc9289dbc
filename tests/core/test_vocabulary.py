"""Configuration, units, packing and the clock."""

import asyncio
import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.core.chunk_codec import pack_counts, pack_times, unpack_counts, unpack_times
from servetop.core.clock import ManualClock, MonotonicClock
from servetop.core.config import EngineConfig, RunConfig, StageConfig, WorkloadConfig, from_data, to_data
from servetop.core.errors import UsageError
from servetop.core.units import parse_rate, parse_seconds

CONFIG = RunConfig(
    engine=EngineConfig(name="vllm", extra_args=("--dtype", "bfloat16")),
    workload=WorkloadConfig(burstiness=math.inf, extra_body={"top_p": 0.9}),
    stages=(StageConfig(request_rate=8.0, duration=30.0), StageConfig(max_concurrency=4, num_prompts=10)),
    goodput={"ttft": 0.5},
)


def test_a_config_survives_json() -> None:
    assert from_data(RunConfig, json.loads(json.dumps(to_data(CONFIG)))) == CONFIG


def test_an_unknown_key_names_the_nearest_one_and_its_place() -> None:
    with pytest.raises(UsageError, match=r"sweep.toml.engine: unknown key 'modle': did you mean 'model'\?"):
        from_data(RunConfig, {"engine": {"modle": "x"}}, where="sweep.toml")


def test_a_header_of_a_newer_version_may_hold_keys_that_are_not_known() -> None:
    assert from_data(StageConfig, {"request_rate": 4.0, "colour": "red"}, strict=False).request_rate == 4.0


def test_a_wrong_type_is_told_with_its_place() -> None:
    with pytest.raises(UsageError, match=r"config.stages.num_prompts: 'many' is not int"):
        from_data(RunConfig, {"stages": [{"num_prompts": "many"}]})


@pytest.mark.parametrize(("text", "seconds"), [("30", 30), ("90s", 90), ("1.5m", 90), ("500ms", 0.5), ("2h", 7200)])
def test_durations_are_seconds_unless_a_unit_says_otherwise(text: str, seconds: float) -> None:
    assert parse_seconds(text) == seconds


@pytest.mark.parametrize("text", ["0", "-3s", "soon", "3 weeks", "inf", ""])
def test_an_invalid_duration_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="not a duration"):
        parse_seconds(text)


@pytest.mark.parametrize("text", ["0", "-1", "fast", "nan", "1e9"])
def test_negative_and_absurd_rates_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="request"):
        parse_rate(text)


@given(st.lists(st.floats(0, 4000), max_size=50), st.floats(0, 1e5))
def test_chunk_times_keep_a_microsecond_without_drift(gaps: list[float], base: float) -> None:
    times = base + np.cumsum(np.array(gaps, dtype=np.float64))
    assert np.allclose(unpack_times(pack_times(times, base=base), base=base), times, rtol=0, atol=1.1e-6)


@given(st.lists(st.integers(0, 100_000), max_size=50))
def test_chunk_tokens_survive_packing(counts: list[int]) -> None:
    array = np.array(counts, dtype=np.int64)
    assert unpack_counts(pack_counts(array), chunks=len(counts)).tolist() == counts


def test_single_tokens_cost_nothing() -> None:
    assert pack_counts(np.ones(500, dtype=np.int64)) == b""


async def test_sleepers_of_a_manual_clock_wake_in_the_order_of_their_deadlines() -> None:
    clock, woken = ManualClock(), []

    async def sleeper(at: float) -> None:
        await clock.sleep_until(at)
        woken.append(at)

    tasks = [asyncio.ensure_future(sleeper(at)) for at in (3.0, 1.0, 2.0)]
    await asyncio.sleep(0)
    clock.advance_to(2.5)
    await asyncio.wait(tasks[1:])
    assert woken == [1.0, 2.0]
    clock.advance_to(9.0)
    await asyncio.gather(*tasks)


async def test_the_monotonic_clock_never_wakes_a_sleeper_early() -> None:
    clock = MonotonicClock()
    deadline = clock.now() + 0.01
    await clock.sleep_until(deadline)
    assert clock.now() >= deadline


def test_no_portion_of_the_namespace_hides_the_others() -> None:
    root = Path(__file__).parents[2]
    assert not list(root.glob("*/servetop/__init__.py"))
