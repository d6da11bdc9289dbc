"""All scenarios of a seed: eight or more of each kind, redrawn until the simulator's state confirms their truth."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from random import Random

from tests.judgement.client_troubles import CLIENT_TROUBLES, ENGINE_TROUBLES, failing_engine, slow_client
from tests.judgement.disturbed_clients import other_clients, slow_network, thin_network
from tests.judgement.drawn_freely import drawn_freely
from tests.judgement.engine_faults import kv_leak, pauses
from tests.judgement.failing_servers import SHARES, aborting_clients, failing_share, wrong_requests
from tests.judgement.hard_loads import (
    bursty,
    cold_cache,
    large_batch,
    near_capacity,
    ramp_down,
    short_run,
    tpot_objective,
    wide_lengths,
)
from tests.judgement.healthy_runs import LOADS, healthy
from tests.judgement.held_loads import closed_loop, held_rate
from tests.judgement.long_prompts import long_prompts
from tests.judgement.overloads import batch_overload, known_knee, kv_overload, rate_overload
from tests.judgement.scenario import Scenario
from tests.judgement.uneven_engines import equal_replicas, failures_in_overload, throttled, unequal_replicas

Draw = Callable[[Random, str], Scenario | None]
"""Draws one scenario with a name; None if its run does not show what it was drawn for."""
KINDS: dict[str, tuple[Draw, ...]] = {
    "kv": (kv_overload,) * 8,
    "batch": (batch_overload,) * 8,
    "rate": (rate_overload,) * 8,
    "long": (long_prompts,) * 8,
    "client": tuple(functools.partial(slow_client, trouble=each) for each in 2 * CLIENT_TROUBLES),
    "failing": tuple(functools.partial(failing_engine, trouble=each) for each in 2 * ENGINE_TROUBLES),
    "healthy": tuple(functools.partial(healthy, load=load) for load in (*LOADS, "near capacity", "closed loop")),
    "ramp": (known_knee,) * 10,
}
"""The draws of each kind, one for each of its scenarios."""
HARD: dict[str, tuple[Draw, ...]] = {
    "large-batch": (large_batch,) * 6,
    "near-capacity": (near_capacity,) * 10,
    "wide": (wide_lengths,) * 8,
    "bursty": (bursty,) * 8,
    "held": (held_rate,) * 6,
    "closed": (closed_loop,) * 6,
    "cold-cache": (cold_cache,) * 4,
    "short": (short_run,) * 8,
    "tpot": (tpot_objective,) * 6,
    "ramp-down": (ramp_down,) * 6,
    "others": (other_clients,) * 4,
    "slow-network": (slow_network,) * 4,
    "thin-network": (thin_network,) * 4,
    "replicas": (equal_replicas,) * 6,
    "unequal": (unequal_replicas,) * 4,
    "throttled": (throttled,) * 4,
    "failures": (failures_in_overload,) * 4,
    "kv-leak": (kv_leak,) * 4,
    "pauses": (pauses,) * 4,
    "free": (drawn_freely,) * 20,
}
"""More draws, which are kept whatever their run shows unless it is not what they are about."""
WATCHED: dict[str, tuple[Draw, ...]] = {
    "failing-share": tuple(functools.partial(failing_share, share=each) for each in SHARES for _ in range(6)),
    "aborts": (aborting_clients,) * 6,
    "wrong-requests": (wrong_requests,) * 6,
}
"""Draws for a watch alone: what a server fails by its own counters, and what it does not."""
_ATTEMPTS = 200


def _draws(kind: str) -> tuple[Draw, ...]:
    return next(draws[kind] for draws in (KINDS, WATCHED, HARD) if kind in draws)


def scenario(kind: str, number: int, *, seed: int) -> Scenario:
    """Return scenario `number` of a kind, the same for the same seed; RuntimeError if no draw succeeds.

    There are as many as one likes: the draws of a kind take turns.
    """
    name = f"{kind} {number} of seed {seed}"
    draw = _draws(kind)[number % len(_draws(kind))]
    draws = (draw(Random(f"{seed}/{kind}/{number}/{attempt}"), name) for attempt in range(_ATTEMPTS))
    found = next((each for each in draws if each is not None), None)
    if found is None:
        raise RuntimeError(f"{name}: none of {_ATTEMPTS} draws shows what it was drawn for")
    return found


def each_scenario(seed: int, *, kinds: Sequence[str] = ()) -> Iterator[Scenario]:
    """Draw the scenarios one after the other: of `KINDS`, or of some kinds of any table if given."""
    for kind in kinds or tuple(KINDS):
        for number in range(len(_draws(kind))):
            yield scenario(kind, number, seed=seed)


def scenarios(seed: int) -> list[Scenario]:
    """Return all scenarios of a seed."""
    return list(each_scenario(seed))
