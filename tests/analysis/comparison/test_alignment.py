"""Stages are compared with stages of equal load, ramps over the rates that they have in common."""

import pytest

from servetop.analysis.cells.stage_load import StageLoad
from servetop.analysis.comparison.alignment import AlignedStage, ArmRun, align
from tests.analysis.comparison.samples import ramp, run, stage


def common(a: list[ArmRun], b: list[ArmRun]) -> list[AlignedStage]:
    """The stages that both arms have."""
    return [each for each in align(a, b) if each.a and each.b]


def test_stages_of_equal_load_are_aligned_and_others_listed() -> None:
    a = run("a", stage(rate=4.0), stage(rate=8.0, start=100.0))
    b = run("b", stage(rate=8.0), stage(rate=16.0, start=100.0))
    found = align([a], [b])
    assert [(each.load.label, len(each.a), len(each.b)) for each in found] == [
        ("8 req/s", 1, 1),
        ("4 req/s", 1, 0),
        ("16 req/s", 0, 1),
    ]


def test_several_recordings_and_repeats_are_units_of_one_stage() -> None:
    a = [run("a1", stage(), stage(start=100.0)), run("a2", stage(seed=2))]
    (found,) = align(a, [run("b", stage())])
    assert [name for name, _ in found.a] == ["a1", "a1", "a2"]
    assert [name for name, _ in found.b] == ["b"]


def test_the_batch_size_may_be_the_change_itself() -> None:
    a, b = (run(str(batch), stage(load=StageLoad(request_rate=8.0, max_num_seqs=batch))) for batch in (64, 128))
    (found,) = align([a], [b])
    assert found.load.label == "8 req/s"


def test_a_sweep_over_batch_sizes_is_aligned_by_batch_size() -> None:
    loads = [StageLoad(request_rate=8.0, max_num_seqs=batch) for batch in (64, 128)]
    found = align([run("a", *(stage(load=each) for each in loads))], [run("b", stage(load=loads[1]))])
    assert [(each.load, len(each.a), len(each.b)) for each in found] == [(loads[1], 1, 1), (loads[0], 1, 0)]


def test_ramps_are_compared_over_their_common_rates_in_parts() -> None:
    a, b = ramp(2.0, 14.0, seconds=120.0), ramp(4.0, 20.0, seconds=80.0)
    found = common([run("a", a)], [run("b", b)])
    assert [found[0].load.ramp_from, found[0].load.request_rate] == pytest.approx([4.0, 4 + 10 / 6])
    assert found[-1].load.request_rate == 14.0
    part = found[0].a[0][1]
    assert part.start == pytest.approx(20.0)
    assert found[-1].b[0][1].until == pytest.approx(50.0)


def test_rising_and_falling_ramps_are_not_comparable() -> None:
    found = align([run("a", ramp(2.0, 14.0))], [run("b", ramp(14.0, 2.0))])
    assert [(len(each.a), len(each.b)) for each in found] == [(1, 0), (0, 1)]


def test_an_exponential_ramp_is_divided_by_its_rates() -> None:
    load = StageLoad(request_rate=16.0, ramp_from=1.0, ramp_strategy="exponential")
    a = run("a", stage(rate=10.0, seconds=64.0, load=load))
    found = common([a], [a])
    part = next(each for each in found if each.load.request_rate == pytest.approx(1 + 15 / 6))
    assert part.a[0][1].until == pytest.approx(64.0 * 0.4518, rel=1e-3)


def test_the_rates_of_a_part_of_a_ramp_are_rounded_in_its_label() -> None:
    assert StageLoad(request_rate=20 / 3, ramp_from=4.0).label == "4 to 6.67 req/s"
