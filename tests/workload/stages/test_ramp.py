"""Parsing of ramps, and invalid stages."""

import math

import pytest

from servetop.core.config import StageConfig
from servetop.core.errors import UsageError
from servetop.workload.stages.plan import LoadPlan
from servetop.workload.stages.ramp import default_ramp, parse_ramp


def test_a_ramp_is_rates_with_durations_and_batch_sizes() -> None:
    assert parse_ramp("8:30s, 16:1.5m,0.5@64:90") == (
        StageConfig(request_rate=8.0, duration=30.0),
        StageConfig(request_rate=16.0, duration=90.0),
        StageConfig(request_rate=0.5, max_num_seqs=64, duration=90.0),
    )


def test_two_rates_are_a_ramp_from_one_to_the_other() -> None:
    stages = parse_ramp("2-16:30s,16-2@8:1m", strategy="exponential")
    assert [(each.ramp_from, each.request_rate, each.ramp_strategy) for each in stages] == [
        (2.0, 16.0, "exponential"),
        (16.0, 2.0, "exponential"),
    ]
    assert [each.label for each in stages] == ["2 to 16 req/s", "16 to 2 req/s · batch 8"]


def test_an_infinite_rate_uses_the_concurrency_limit() -> None:
    assert parse_ramp("inf:10s", max_concurrency=4) == (
        StageConfig(request_rate=math.inf, max_concurrency=4, duration=10.0),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the ramp is empty"),
        ("8", "'8' has no duration"),
        ("8:30s,,4:3s", "'' has no duration"),
        ("8:30s,fast:3s", "in 'fast:3s': 'fast' is not a request rate"),
        ("8:0", "in '8:0': '0' is not a duration"),
        ("-8:30s", "'-8' is not a request rate"),
        ("nan:30s", "'nan' is not a request rate"),
        ("8@many:30s", "invalid batch size 'many'"),
        ("8@0:30s", "invalid batch size '0'"),
        ("8@:30s", "invalid batch size ''"),
        ("inf:30s", "never stops sending: give --max-concurrency"),
        ("8:30q", "'30q' is not a duration"),
    ],
)
def test_the_error_names_the_faulty_part(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_ramp(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_default_ramp_is_valid_and_ends() -> None:
    plan = LoadPlan(segments=tuple(enumerate(default_ramp())), begin=0.0)
    assert all(stage.duration is not None for _, stage in plan.segments)


@pytest.mark.parametrize(
    ("stage", "message"),
    [
        (StageConfig(request_rate=0.0, duration=1.0), "sends nothing"),
        (StageConfig(request_rate=-1.0, duration=1.0), "sends nothing"),
        (StageConfig(request_rate=math.nan, duration=1.0), "sends nothing"),
        (StageConfig(request_rate=1e9, duration=1.0), "too high"),
        (StageConfig(duration=1.0), "an infinite rate needs --max-concurrency or --num-prompts"),
        (StageConfig(request_rate=1.0, duration=0.0), "a duration of 0"),
        (StageConfig(request_rate=1.0, num_prompts=0), "a number of prompts of 0"),
        (StageConfig(max_concurrency=0), "a concurrency of 0"),
    ],
)
def test_an_invalid_stage_is_rejected(stage: StageConfig, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        LoadPlan(segments=((0, stage),), begin=0.0)


def test_a_plan_without_stages_is_rejected() -> None:
    with pytest.raises(UsageError, match="no stages"):
        LoadPlan(segments=(), begin=0.0)
