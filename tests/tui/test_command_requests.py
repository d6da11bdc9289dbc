"""The commands that the steering keys request, without a screen."""

from __future__ import annotations

import math
from dataclasses import replace
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.core.events import Action, Command
from servetop.core.interfaces.run_source import RunUpdate
from servetop.core.tick import LoadGauges
from servetop.tui.state.command_requests import (
    CommandRequest,
    CommandTarget,
    Rejected,
    burst,
    described,
    scaled_rate,
    stepped_batch_size,
    stepped_concurrency,
)
from servetop.tui.state.run_state import RunState

LOAD = LoadGauges(stage=1, request_rate=64.0, max_concurrency=None, in_flight=120)


def target(**changes: object) -> CommandTarget:
    start = CommandTarget(gauges=LOAD, requested={}, engine=None, max_num_seqs=192, boot_seconds=41.0)
    return replace(start, **changes)  # type: ignore[arg-type]


def rejection(outcome: CommandRequest | Rejected) -> str:
    assert isinstance(outcome, Rejected)
    return outcome.why


def test_the_rate_is_scaled_from_the_last_request() -> None:
    assert scaled_rate(target(), 1.05) == CommandRequest(action=Action.SET_RATE, value=67.2)
    assert scaled_rate(target(requested={Action.SET_RATE: 67.2}), 1.05) == CommandRequest(
        action=Action.SET_RATE, value=70.56
    )


def test_a_missing_or_unlimited_rate_cannot_be_scaled() -> None:
    assert "no load to steer yet" in rejection(scaled_rate(target(gauges=LoadGauges()), 1.05))
    endless = replace(LOAD, request_rate=math.inf)
    assert "steer that with [ and ]" in rejection(scaled_rate(target(gauges=endless), 1.05))


def test_concurrency_moves_by_a_tenth_and_by_at_least_one() -> None:
    limited = target(gauges=replace(LOAD, max_concurrency=200))
    assert stepped_concurrency(limited, 1) == CommandRequest(action=Action.SET_CONCURRENCY, value=220)
    assert stepped_concurrency(limited, -1) == CommandRequest(action=Action.SET_CONCURRENCY, value=180)
    assert stepped_concurrency(target(gauges=replace(LOAD, max_concurrency=1)), -1) == CommandRequest(
        action=Action.SET_CONCURRENCY, value=1
    )


def test_without_a_concurrency_limit_lower_sets_one_at_what_is_in_flight() -> None:
    assert stepped_concurrency(target(), -1) == CommandRequest(action=Action.SET_CONCURRENCY, value=108)
    assert "[ sets one" in rejection(stepped_concurrency(target(), 1))


def test_an_engine_with_a_live_batch_size_changes_it_at_once(canned: ModuleType) -> None:
    assert stepped_batch_size(target(engine=canned.SIM), -1) == CommandRequest(
        action=Action.SET_MAX_NUM_SEQS, value=160
    )
    assert stepped_batch_size(target(engine=canned.SIM), 1) == CommandRequest(action=Action.SET_MAX_NUM_SEQS, value=224)


def test_a_managed_engine_is_restarted_only_after_a_question(canned: ModuleType) -> None:
    request = stepped_batch_size(target(engine=canned.VLLM), 1)
    assert isinstance(request, CommandRequest)
    assert request.question == "Batch size 224 restarts vLLM (about 41.0 s). Requests in flight are drained first."


def test_an_attached_engine_keeps_its_batch_size(canned: ModuleType) -> None:
    assert "servetop did not start this TGI" in rejection(stepped_batch_size(target(engine=canned.NO_METRICS), 1))
    assert "not ready yet" in rejection(stepped_batch_size(target(), 1))
    unknown = target(engine=canned.SIM, max_num_seqs=None)
    assert "does not report its batch size: start it with --max-num-seqs N" in rejection(stepped_batch_size(unknown, 1))


def test_a_batch_size_counts_from_its_reply_until_a_later_sample_has_one(canned: ModuleType) -> None:
    run = canned.growing(110.0)
    state = RunState(run.header)
    state.fold(run.poll())
    assert state.target.max_num_seqs == 192
    command = Command(id=1, at=110.1, action=Action.SET_MAX_NUM_SEQS, value=224.0, applied_at=110.2, reply="224")
    changed = replace(run.header, engine=replace(canned.SIM, max_num_seqs=224))
    state.fold(RunUpdate(commands=[command], header=changed))
    assert state.target.max_num_seqs == 224
    newest = state.history.ticks[-1]
    assert newest.engine is not None
    sample = replace(newest.engine, scrape_start=110.4, scrape_end=110.45, max_num_seqs=160.0)
    tick = replace(newest, client=replace(newest.client, index=newest.index + 2), engine=sample)
    state.fold(RunUpdate(ticks=[tick]))
    assert state.target.max_num_seqs == 160


def test_a_burst_is_a_seconds_worth() -> None:
    assert burst(target()) == CommandRequest(action=Action.BURST, value=64.0)
    assert burst(target(gauges=replace(LOAD, request_rate=0.2))) == CommandRequest(action=Action.BURST, value=1.0)
    assert "no load" in rejection(burst(target(gauges=LoadGauges())))


@given(st.integers(1, 5000))
def test_batch_sizes_go_up_and_come_down_but_never_below_one(current: int) -> None:
    from servetop.tui.state.command_requests import _next_batch_size

    assert _next_batch_size(current, 1) > current
    assert 1 <= _next_batch_size(current, -1) < max(current, 2)


@pytest.mark.parametrize("action", list(Action))
def test_every_command_has_a_text(action: Action) -> None:
    assert described(action, 64.0, "a note")
