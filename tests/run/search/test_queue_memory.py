"""Whether latencies remember a queue: by the requests in flight before each, and by how much their number varies."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from servetop.run.search.load_windows import windows
from servetop.run.search.queue_memory import QueueMemory, queue_memory, shows_level_at_once
from tests.run.search.open_loops import with_queue, without_queue

NONE = QueueMemory(correlation=0.0, requests=1000, dispersion=1.0, spans=30.0, blocks=None)


@dataclass(frozen=True)
class Window:
    load: float
    memory: QueueMemory | None
    missed: float
    counted: float = 1000.0


KEPT, MISSED = Window(9.5, NONE, missed=80.0), Window(10.5, NONE, missed=150.0)


def forgets(memory: QueueMemory) -> bool:
    """Whether loads of which that above the answer has this memory are taken as ones without it."""
    return shows_level_at_once([KEPT, replace(MISSED, memory=memory)], allowed=0.1)


@pytest.mark.parametrize("seed", range(5))
def test_independent_requests_show_the_level_of_a_load_at_once_and_a_queue_does_not(seed: int) -> None:
    assert shows_level_at_once(windows(without_queue(seed=seed), 0), allowed=0.1)
    assert not shows_level_at_once(windows(with_queue(seed=seed), 0), allowed=0.1)


def test_requests_in_flight_of_independent_requests_vary_as_much_as_their_mean() -> None:
    for independent, queued in zip(windows(without_queue(), 0)[2:], windows(with_queue(), 0)[2:], strict=True):
        assert independent.memory is not None
        assert queued.memory is not None
        assert independent.memory.dispersion == pytest.approx(1.0, abs=0.6)
        assert queued.memory.dispersion > 2.0
        assert abs(independent.memory.correlation) < 0.15
        assert queued.memory.correlation > 0.5


def test_any_sign_of_a_queue_counts() -> None:
    assert forgets(NONE)
    assert not forgets(replace(NONE, correlation=0.3))
    assert not forgets(replace(NONE, dispersion=2.0))


def test_few_requests_or_a_short_time_leave_a_queue_possible() -> None:
    assert not forgets(replace(NONE, correlation=0.15, requests=200))
    assert not forgets(replace(NONE, spans=4.0))
    assert not forgets(replace(NONE, spans=0.5))


def test_loads_at_both_sides_of_the_answer_must_show_it() -> None:
    for other in (replace(KEPT, load=9.0), replace(MISSED, load=20.0), replace(MISSED, memory=None)):
        assert not shows_level_at_once([KEPT, other], allowed=0.1)
    assert not shows_level_at_once([], allowed=0.1)


def test_the_largest_load_is_where_the_fewest_samples_say_otherwise() -> None:
    lucky, unlucky = replace(MISSED, load=10.2, missed=99.0), replace(KEPT, load=9.0, missed=101.0)
    queued = replace(MISSED, memory=replace(NONE, dispersion=9.0), load=13.5, missed=900.0)
    assert shows_level_at_once([unlucky, KEPT, lucky, MISSED], allowed=0.1)
    assert not shows_level_at_once([unlucky, KEPT, lucky, MISSED, queued], allowed=0.1)


def test_requests_in_flight_that_never_change_tell_nothing() -> None:
    values, level = np.arange(100.0), np.full(50, 8.0)
    assert queue_memory(values, np.full(100, 7.0), level, spans=20.0, blocks=None) is None
    assert queue_memory(values[:10], values[:10], level, spans=20.0, blocks=None) is None


def test_equal_values_have_equal_ranks() -> None:
    before = np.repeat([1.0, 2.0], 50)
    found = queue_memory(np.tile([1.0, 3.0], 50), before, before, spans=20.0, blocks=None)
    assert found is not None
    assert found.correlation == pytest.approx(0.0, abs=1e-12)
    assert found.dispersion == pytest.approx(0.25 / 1.5)
