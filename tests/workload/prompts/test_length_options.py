"""No length is overridden without a word."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest

from servetop.core.config import StageConfig, WorkloadConfig
from servetop.core.errors import UsageError
from servetop.workload.prompts.lengths import LENGTH_DISTRIBUTIONS, lengths_for
from servetop.workload.validation import check_load, resolve_workload

GIVEN = {
    "input": 9, "output": 9, "input_mean": 9, "output_mean": 9, "input_cap": 4000, "output_cap": 4000, "input_max": 9,
}  # fmt: skip


@pytest.mark.parametrize("side", ["input", "output"])
@pytest.mark.parametrize("name", LENGTH_DISTRIBUTIONS)
def test_a_length_has_an_effect_or_is_refused(name: str, side: str) -> None:
    """For each distribution alone, and with each parameter that might replace the length."""
    specs = [name, *(f"{name}:{key}={GIVEN[key]}" for key in LENGTH_DISTRIBUTIONS[name] if key in GIVEN)]
    for spec in specs:
        plain = WorkloadConfig(lengths=spec)
        longer = replace(plain, input_len=4096) if side == "input" else replace(plain, output_len=4096)
        if _drawn(plain) == _drawn(longer):
            with pytest.raises(UsageError, match=f"--{side}-len"):
                resolve_workload(longer)


def _drawn(workload: WorkloadConfig) -> list[tuple[int, int]]:
    return list(itertools.islice(lengths_for(workload, (1,)).pairs(), 50))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"lengths": "fixed:output=3", "output_len": 9}, "--output-len 9: --lengths sets it too, by output"),
        ({"lengths": "uniform:ratio=0.2", "range_ratio": 0.3}, "--random-range-ratio: --lengths sets it too, by ratio"),
        ({"lengths": "normal:input_max=9,input_std=2"}, "--lengths: input_max takes the place of input_std"),
    ],
)
def test_a_length_that_is_set_twice_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        resolve_workload(WorkloadConfig(**fields))


def test_a_range_ratio_applies_to_uniform_lengths() -> None:
    pairs = lengths_for(WorkloadConfig(input_len=100, lengths="uniform", range_ratio=0.25), (1,)).pairs()
    assert {75 <= next(pairs)[0] <= 125 for _ in range(200)} == {True}


def test_a_time_scale_beside_a_rate_is_refused() -> None:
    traced, replay = resolve_workload(WorkloadConfig(dataset="azure-conv", time_scale=0.5))
    assert replay is not None
    check_load(traced, [StageConfig(request_rate=replay.rate, num_prompts=5)])
    with pytest.raises(UsageError, match="--time-scale and the request rate both stretch"):
        check_load(traced, [StageConfig(request_rate=3.0, num_prompts=5)])
