"""Means over starts of a sweep that still runs, from its ticks, stages and notes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from servetop.analysis.cells.stage_load import StageLoad
from servetop.analysis.sweep.repeat_means import GrowingSweep
from servetop.core.events import Note, RunEnd, Severity, StageChange
from servetop.core.interfaces.run_source import RunUpdate
from servetop.core.tick import TICK_SECONDS, ClientTick, LoadGauges, Tick

SECONDS = 5.0
"""Of a stage: four of load, and one without, such as a restart."""
PER_STAGE = round(SECONDS / TICK_SECONDS)
LOAD = StageLoad(request_rate=4.0)


def stage(index: int, **changes: object) -> StageChange:
    known = {"request_rate": 4.0, "max_concurrency": None, "max_num_seqs": None, "num_prompts": 8, "repeat": index}
    return StageChange(at=index * SECONDS, index=index, label="", **(known | changes))  # type: ignore[arg-type]


def ticks(index: int, rate: float, *, failed: int = 0) -> list[Tick]:
    """The ticks of a stage with this many output tokens/s over four seconds, then one without load."""
    first, loaded = index * PER_STAGE, round(4.0 / TICK_SECONDS)
    found = []
    for number in range(PER_STAGE):
        last = number == loaded - 1
        gauges = LoadGauges(stage=index, in_flight=int(number < loaded - 1))
        tokens = round(rate * TICK_SECONDS) if number < loaded else 0
        client = ClientTick(
            index=first + number,
            gauges=gauges,
            output_tokens=tokens,
            ok=8 - failed if last else 0,
            errors=failed if last else 0,
        )
        found.append(Tick(client=client))
    return found


def restart(before: int) -> Note:
    text = f"repeat {before} → {before + 1}: restarting the engine"
    return Note(at=before * SECONDS - 0.5, severity=Severity.INFO, source="engine", text=text)


def sweep_of(*updates: RunUpdate, attached: bool = False) -> GrowingSweep:
    sweep = GrowingSweep(max_failures="0", attached=attached)
    for update in updates:
        sweep.add(update)
    return sweep


def updates(rates: Sequence[float], *, restarts: bool = True) -> list[RunUpdate]:
    return [
        RunUpdate(ticks=ticks(index, rate), stages=[stage(index)], notes=[restart(index)] if index and restarts else [])
        for index, rate in enumerate(rates)
    ]


def test_a_running_repeat_does_not_count_until_another_stage_or_the_end_follows() -> None:
    first, second, third = updates([400.0, 440.0, 480.0])
    assert sweep_of(first).means() == {}
    one = sweep_of(first, second).means()[LOAD]
    assert (one.mean, one.starts, one.half_width) == (400.0, 1, None)
    two = sweep_of(first, second, third).means()[LOAD]
    assert (two.mean, two.starts) == (420.0, 2)
    assert two.half_width == pytest.approx(12.706 * 20.0, rel=1e-3)
    over = RunUpdate(end=RunEnd(at=15.0, exit_code=0, reason=""))
    three = sweep_of(first, second, third, over).means()[LOAD]
    assert (three.mean, three.starts) == (440.0, 3)
    assert three.half_width == pytest.approx(4.303 * 40.0 / 3**0.5, rel=1e-3)


def test_repeats_of_one_start_have_no_interval() -> None:
    mean = sweep_of(*updates([400.0, 440.0, 480.0], restarts=False)).means()[LOAD]
    assert (mean.mean, mean.starts, mean.half_width) == (420.0, 1, None)


def test_repeats_of_less_than_two_seconds_have_no_mean_as_ticks_are_too_coarse_for_them() -> None:
    first, second, third = updates([400.0, 440.0, 480.0])
    short = replace(second, ticks=[*second.ticks[:7], *(Tick(client=ClientTick(index=i)) for i in range(27, 40))])
    assert LOAD in sweep_of(first, second, third).means()
    assert sweep_of(first, short, third).means() == {}


def test_a_failed_repeat_is_left_out() -> None:
    first, second, third, fourth = updates([400.0, 440.0, 480.0, 0.0])
    failed = replace(second, ticks=ticks(1, 440.0, failed=3))
    mean = sweep_of(first, failed, third, fourth).means()[LOAD]
    assert (mean.mean, mean.starts) == (440.0, 2)


def test_a_warm_up_is_no_repeat() -> None:
    warmup = RunUpdate(ticks=ticks(0, 100.0), stages=[stage(0, warmup=True)])
    _, second, third = updates([0.0, 440.0, 480.0])
    sweep = sweep_of(warmup, second, third)
    assert [each.index for each in sweep.ended] == [1]
    assert sweep.means()[LOAD].mean == 440.0


def test_ticks_that_come_before_their_stages_are_counted_when_these_follow() -> None:
    whole = updates([400.0, 440.0, 480.0])
    early = RunUpdate(ticks=[tick for each in whole[:2] for tick in each.ticks], more=True)
    late = RunUpdate(
        ticks=whole[2].ticks,
        stages=[row for each in whole for row in each.stages],
        notes=[note for each in whole for note in each.notes],
    )
    assert sweep_of(early, late).means() == sweep_of(*whole).means()
