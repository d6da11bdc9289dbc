"""How long a stage has to be before the variation within it can be judged."""

from __future__ import annotations

from dataclasses import replace

import pytest

from servetop.analysis.comparison.needed_seconds import needed_seconds
from tests.analysis.comparison.samples import stage


def test_sixteen_blocks_of_ten_ticks_are_needed_for_short_requests() -> None:
    assert needed_seconds(stage(rate=40.0, seconds=60.0)) == 16 * 10 * 0.25


def test_a_block_has_to_last_as_long_as_a_request_stays() -> None:
    sample = stage(rate=40.0, seconds=60.0)
    assert needed_seconds(replace(sample, done_at=sample.sent + 5.0)) == pytest.approx(16 * 5.0)


def test_a_block_has_to_contain_four_requests() -> None:
    assert needed_seconds(stage(rate=0.5, seconds=100.0)) == pytest.approx(16 * 4 / 0.5)


def test_a_stage_without_a_successful_request_needs_as_much_as_one_of_short_requests() -> None:
    sample = stage(rate=40.0, seconds=60.0)
    assert needed_seconds(replace(sample, ok=~sample.ok)) == 40.0
