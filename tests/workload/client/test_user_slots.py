"""Closed-loop users: one slot each, with or without think time."""

import itertools
import math

import numpy as np
import pytest

from servetop.workload.client.user_slots import UserSlots, parse_think_time


def test_without_think_time_a_slot_is_free_as_soon_as_its_request_ends() -> None:
    slots = UserSlots(None)
    slots.freed(3.0, closed=True)
    assert slots.free_since(3.5, in_flight=1, limit=2) == 3.0
    assert slots.free_since(3.5, in_flight=2, limit=2) is None
    assert slots.usable_at(3.5, not_before=0.0) == math.inf


def test_unused_slots_are_free_from_the_time_of_the_call() -> None:
    slots = UserSlots(None)
    assert [slots.free_since(at, in_flight=0, limit=4) for at in (1.0, 1.3)] == [1.0, 1.3]
    slots.freed(3.0, closed=True)
    assert [slots.free_since(at, in_flight=0, limit=4) for at in (3.2, 3.4)] == [3.0, 3.4]
    slots.freed(5.0, closed=True)
    slots.opened()
    assert slots.free_since(6.0, in_flight=0, limit=4) == 6.0


def test_a_thinking_user_keeps_the_slot_until_the_think_time_is_over() -> None:
    slots = UserSlots(itertools.repeat(2.0))
    slots.freed(3.0, closed=True)
    slots.freed(4.0, closed=True)
    assert slots.free_since(4.5, in_flight=0, limit=2) is None
    assert slots.usable_at(4.5, not_before=0.0) == 5.0
    assert slots.usable_at(4.5, not_before=4.8) == 4.8
    assert slots.free_since(5.1, in_flight=0, limit=2) == 5.0
    assert slots.free_since(5.1, in_flight=1, limit=2) is None
    assert slots.free_since(5.1, in_flight=1, limit=3) == 5.1


def test_think_times_have_the_configured_mean() -> None:
    pauses = parse_think_time("exponential:mean=2", seed=(4,))
    assert pauses is not None
    drawn = np.array(list(itertools.islice(pauses, 20_000)))
    assert [drawn.mean(), drawn.std()] == pytest.approx([2.0, 2.0], rel=0.05)
    again = parse_think_time("exponential:mean=2", seed=(4,))
    assert again is not None
    assert next(again) == drawn[0]
    constant = parse_think_time("500ms", seed=(0,))
    assert constant is not None
    assert next(constant) == 0.5
    assert parse_think_time("", seed=(0,)) is None
