"""The energy in a summary: under load, per token and request of that time, and null without a GPU."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from servetop.analysis.summary.summary_types import EnergySummary
from servetop.core.events import GpuSample, RequestRecord, StageChange
from servetop.core.tick import Tick

MakeRequest = Callable[..., RequestRecord]
MakeTick = Callable[..., Tick]
Summarise = Callable[..., dict[str, Any]]


def stage(index: int, at: float, **fields: Any) -> StageChange:
    values: dict[str, Any] = {"request_rate": 4.0, "max_concurrency": None, "max_num_seqs": None} | fields
    return StageChange(at=at, index=index, label=f"stage {index}", **values)


@pytest.fixture
def ticks(make_tick: MakeTick) -> Sequence[Tick]:
    """Load from second 10 to 30, with 20 tokens and one request per tick."""
    return [
        make_tick(index, due=1, ok=1, output_tokens=20, in_flight=1) if 40 <= index < 120 else make_tick(index)
        for index in range(160)
    ]


def gpu_samples(*, counter: bool = False) -> list[GpuSample]:
    """A GPU sample every quarter of a second, with 100 W before second 10 and 500 W from then on."""
    samples, joules = [], 7000.0
    for number in range(161):
        at = number / 4
        joules += (100.0 if at <= 10 else 500.0) / 4
        power = 100.0 if at < 10 else 500.0
        energy = joules if counter else None
        samples.append(GpuSample(at=at, index=0, name="H200", power=power, energy=energy))
    return samples


@pytest.mark.parametrize("counter", [True, False], ids=["counter", "power"])
def test_only_the_energy_during_the_load_counts(
    counter: bool, summary_of: Summarise, make_request: MakeRequest, ticks: Sequence[Tick]
) -> None:
    summary = summary_of(make_request(0, 10.0), ticks=ticks, stages=[stage(0, 10.0)], gpus=gpu_samples(counter=counter))
    energy = summary["energy"]
    assert energy["joules"] == pytest.approx(500.0 * 20)
    assert energy["joules_per_output_token"] == pytest.approx(500.0 * 20 / 1600)
    assert energy["joules_per_request"] == pytest.approx(500.0 * 20 / 80)
    assert (energy["mean_power"], energy["gpus"], energy["known_share"]) == (pytest.approx(500.0), 1, 1.0)
    assert energy["source"] == ("counter" if counter else "power")


def test_stages_add_up_to_the_run_without_the_time_between_them(
    summary_of: Summarise, make_request: MakeRequest, ticks: Sequence[Tick]
) -> None:
    stages = [stage(0, 10.0), stage(1, 15.0, request_rate=None), stage(2, 20.0)]
    summary = summary_of(make_request(0, 10.0), ticks=ticks, stages=stages, gpus=gpu_samples())
    parts = [each["energy"]["joules"] for each in summary["stages"]]
    assert parts == [pytest.approx(2500.0), pytest.approx(5000.0)]
    assert summary["energy"]["joules"] == pytest.approx(sum(parts))


def test_a_warm_up_is_excluded_from_all_totals(
    summary_of: Summarise, make_request: MakeRequest, ticks: Sequence[Tick]
) -> None:
    stages = [stage(0, 10.0, warmup=True), stage(1, 20.0)]
    summary = summary_of(make_request(0, 20.0, stage=1), ticks=ticks, stages=stages, gpus=gpu_samples())
    assert summary["energy"]["joules"] == pytest.approx(5000.0)


def test_the_steady_window_has_its_own_energy(
    summary_of: Summarise, make_request: MakeRequest, ticks: Sequence[Tick]
) -> None:
    requests = [make_request(index, 10.0 + index / 4) for index in range(80)]
    steady = summary_of(*requests, ticks=ticks, stages=[stage(0, 10.0)], gpus=gpu_samples())["steady"]
    assert steady["energy"]["joules"] == pytest.approx(500.0 * steady["seconds"], rel=0.02)
    assert steady["energy"]["joules_per_output_token"] == pytest.approx(500.0 / 80, rel=0.02)


def test_a_gap_is_reported_and_does_not_reduce_the_energy_per_token(
    summary_of: Summarise, make_request: MakeRequest, ticks: Sequence[Tick]
) -> None:
    gpus = [each for each in gpu_samples() if not 15.0 < each.at < 20.0]
    energy = summary_of(make_request(0, 10.0), ticks=ticks, stages=[stage(0, 10.0)], gpus=gpus)["energy"]
    assert (energy["joules"], energy["known_share"]) == (pytest.approx(7500.0), pytest.approx(0.75))
    assert energy["joules_per_output_token"] == pytest.approx(500.0 * 20 / 1600)


def test_without_a_gpu_all_energy_metrics_are_null(
    summary_of: Summarise, make_request: MakeRequest, ticks: Sequence[Tick]
) -> None:
    summary = summary_of(make_request(0, 10.0), ticks=ticks, stages=[stage(0, 10.0)])
    assert summary["energy"] == dataclasses.asdict(EnergySummary())
