"""How far a headless run is."""

from __future__ import annotations

import pytest

from servetop.cli.progress import DoneShare
from servetop.core.config import StageConfig


def test_stages_weigh_by_their_seconds() -> None:
    done = DoneShare([StageConfig(duration=10.0), StageConfig(duration=30.0)])
    seen = [done.after(stage, at, 0) for stage, at in [(-1, 1.0), (0, 2.0), (0, 7.0), (1, 12.0), (1, 27.0), (1, 90.0)]]
    assert seen == pytest.approx([0.0, 0.0, 0.125, 0.25, 0.625, 1.0])


def test_stages_of_counted_requests_weigh_alike() -> None:
    done = DoneShare([StageConfig(num_prompts=100), StageConfig(num_prompts=10, duration=60.0)])
    seen = [done.after(stage, at, finished) for stage, at, finished in [(0, 0.0, 0), (0, 3.0, 50), (1, 9.0, 100)]]
    assert seen == pytest.approx([0.0, 0.25, 0.5])
    assert done.after(1, 24.0, 105) == pytest.approx(0.75), "ten requests or a minute, whichever is further"


def test_a_stage_that_somebody_added_on_the_way_is_past_the_plan() -> None:
    done = DoneShare([StageConfig(duration=10.0)])
    assert done.after(1, 5.0, 10) == 1.0
