"""Checks statements about the network, other clients, the KV blocks that are held, and loads that show too little."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tests.judgement.known_truth import KnownTruth
from tests.judgement.live_checks import STALE, WINDOW, near
from tests.judgement.scenario import Cause
from tests.judgement.statements import Statement, seconds_of

Check = Callable[[Statement, KnownTruth], bool | None]
_MOST = 0.5
"""Fraction of a time from which something is so for most of it."""
_CLEARLY = 0.75
_HIGH = 0.7
"""KV usage from which a larger batch soon fills the blocks, less what a late page may differ."""
_CLOCK = 1.5
"""Seconds by which a time that is printed without its fraction may be off."""
_KEPT_WITHIN = 10.0
"""Percentage points by which a share of ten seconds of requests may be off."""


def _network(_: Statement, truth: KnownTruth) -> bool:
    """Whether most requests in flight, or most of the time to the first token, are not the engine's."""
    return truth.cause is Cause.NETWORK or truth.held_outside > _MOST


def _slow_first_token(said: Statement, truth: KnownTruth) -> bool:
    client, engine = truth.mean_ttfts
    return near(said.number("client"), client) and near(said.number("engine"), engine, absolute=0.005)


def _held_between(said: Statement, truth: KnownTruth) -> bool:
    state, loaded = truth.state, truth.state.within(truth.state.run.stages[0].at, math.inf)
    inside = float((state.waiting + state.running)[loaded].mean())
    return near(said.number("client"), float(state.in_flight[loaded].mean())) and near(
        said.number("engine"), inside, absolute=3
    )


def _foreign(said: Statement, truth: KnownTruth) -> bool:
    """Whether others use the engine, and about as many of its requests are theirs, now or in the whole load."""
    count, at = said.number("count"), said.at if said.live else None
    start, until = (truth.state.run.stages[0].at, truth.state.load_end) if at is None else (at - 2 * WINDOW, at)
    theirs = truth.foreign[truth.state.within(start, until)]
    low, high = (float(theirs.min()), float(theirs.max())) if theirs.size else (0.0, 0.0)
    within = 0.5 * low - 3 <= count <= 1.5 * high + 3
    return truth.shared and (math.isnan(count) or within)


def _holds(said: Statement, truth: KnownTruth) -> bool:
    """Whether that many ran while others waited, or fit by their lengths; `its` blocks include those lost by a leak."""
    low, high = truth.sequences_held
    if truth.usable_blocks < 1 and said.text.startswith("its"):
        low, high = (each / truth.usable_blocks for each in truth.sequences_that_fit)
    return 0.75 * low <= said.number("sequences") <= 1.25 * high


def _holds_too_few(said: Statement, truth: KnownTruth) -> bool:
    """Whether as many ran while others waited, and as many would fit by their lengths if no block were lost."""
    low, high = (each / truth.usable_blocks for each in truth.sequences_that_fit)
    fits = 0.75 * low <= said.number("expected") <= 1.25 * high
    return fits and near(said.number("sequences"), truth.ran_in_queues, absolute=3)


def _neither_full(_: Statement, truth: KnownTruth) -> bool | None:
    held = truth.held_shares
    return None if math.isnan(held[0]) else False if max(held) >= _CLEARLY else True if max(held) < _MOST else None


def _still_grew(_: Statement, truth: KnownTruth) -> bool | None:
    """Whether more were in flight at the end of the last load than at its middle; None if about as many."""
    state, (begin, end) = truth.state, truth.state.last_load
    middle = ((begin if begin < end else state.run.stages[0].at) + end) / 2
    half, end = (state.mean(state.in_flight, at - 2.0, at) for at in (middle, state.load_end))
    return None if abs(end - half) <= max(0.1 * half, 2.0) else end > half


def _short_stages(said: Statement, truth: KnownTruth) -> bool:
    starts = [stage.at for stage in truth.state.run.stages]
    lengths = np.diff([*starts, max(truth.state.load_end, starts[-1])])
    return bool(lengths.max() <= said.number("seconds") + 1.0)


def _batch_fills_blocks(said: Statement, truth: KnownTruth) -> bool:
    return truth.kv_peak((said.at or 0.0) - WINDOW, said.at or 0.0) >= _HIGH


def _no_token(said: Statement, truth: KnownTruth) -> bool | None:
    """Whether no token arrived for so long, somewhere in the run or just before the verdict line."""
    seconds = said.number("seconds")
    if said.values["starts"]:
        return _such_pauses(said, truth)
    if said.live:
        return truth.state.silent_before(said.at or 0.0) >= seconds - 1.0
    return truth.state.longest_silence >= seconds - 1.0


def _such_pauses(said: Statement, truth: KnownTruth) -> bool:
    """Whether that many pauses of a second or more happened, one of them at each named time."""
    silences = [(start, until - start) for start, until in truth.state.silences]
    most, fewest = (sum(length >= least for _, length in silences) for least in (1.0, 2.5))
    named = [seconds_of(each) for each in (said.values["starts"] or "").replace(", …", "").split(", ")]
    near_one = [any(abs(start - at) <= _CLOCK and length >= 1.0 for start, length in silences) for at in named]
    return fewest <= said.number("count") <= most and all(near_one)


def _kept_now(said: Statement, truth: KnownTruth) -> bool | None:
    """Whether that share of the requests that ended in the window kept the objectives."""
    at = said.at or 0.0
    ended = [each for each in truth.state.records if each.done_at and at - STALE - 4.0 <= each.done_at <= at]
    if len(ended) < 10:
        return None
    shares = [100 * sum(truth.state.met(each, slack=slack) for each in ended) / len(ended) for slack in (0.95, 1.05)]
    return shares[0] - _KEPT_WITHIN <= said.number("percent") <= shares[1] + _KEPT_WITHIN


def _refused(_: Statement, truth: KnownTruth) -> bool:
    return any(each.http_status == 429 for each in truth.state.records)


def _batch_changes(_: Statement, truth: KnownTruth) -> bool:
    return len({stage.max_num_seqs for stage in truth.state.run.stages}) > 1


def _nothing_answered(_: Statement, truth: KnownTruth) -> bool:
    return not any(each.status == "ok" for each in truth.state.records)


def _throttled_now(said: Statement, truth: KnownTruth) -> bool:
    gpus = truth.scenario.plan.gpus
    return gpus is not None and gpus.throttle_from <= (said.at or 0.0)


FURTHER_CHECKS: dict[str, Check] = {
    "failed at": lambda _, truth: truth.names(Cause.FAILING),
    "engine failed": lambda _, truth: truth.names(Cause.FAILING),
    "no load": lambda _, truth: not truth.state.records,
    "check address": _nothing_answered,
    "refused": _refused,
    "batch changes": _batch_changes,
    "cache fills": lambda _, __: None,
    "lower rate or metrics": lambda _, truth: None if truth.overloaded or truth.cause is Cause.NETWORK else False,
    "network": _network,
    "slow first token": _slow_first_token,
    "held between": _held_between,
    "both loads": lambda _, truth: truth.shared,
    "foreign now": _foreign,
    "throttled now": _throttled_now,
    "KV holds": _holds,
    "KV holds too few": _holds_too_few,
    "neither full": _neither_full,
    "still grew": _still_grew,
    "left unserved": lambda _, truth: truth.left > 0,
    "short stages": _short_stages,
    "few bursts": lambda _, truth: truth.scenario.plan.config.workload.burstiness < 0.5,
    "batch fills blocks": _batch_fills_blocks,
    "no token": _no_token,
    "kept now": _kept_now,
    "sent now": lambda _, __: None,
}
"""The check of each of these patterns."""
