"""Whether a server works for other clients too, from its requests and tokens relative to those of this client."""

from __future__ import annotations

import math

EXCESS_LIMIT = 0.5
"""Excess of both requests and tokens of the engine, as fractions of the client's, that only other clients explain."""
EXCESS_ALONE, FEWEST_ALONE = 2.0, 3.0
"""Excess of requests, as a fraction and as a count, that needs no excess of tokens to be believed."""


def serves_others(requests: float, tokens: float, *, in_flight: float, foreign: float) -> bool:
    """Whether engine / client - 1 of requests and tokens shows other clients; NaN if unknown.

    `in_flight` are the client's mean requests in flight, `foreign` those of the engine while the client had none. If
    the tokens are unknown, as with few metrics pages, the requests must exceed the client's many times. If no page came
    while the client had requests in flight, the tokens and the requests at the other pages must both exceed its own.
    """
    if math.isnan(requests):
        return foreign >= FEWEST_ALONE and tokens > EXCESS_LIMIT
    if math.isnan(tokens):
        return requests > EXCESS_ALONE and requests * in_flight >= FEWEST_ALONE
    return min(requests, tokens) > EXCESS_LIMIT


def shares_text(requests: float, tokens: float) -> str:
    """Return which shares of the engine's requests and tokens, from engine / client - 1, other clients have."""
    if math.isnan(requests):
        return f"other traffic: about {_share(tokens):.0%} of the engine's tokens are not from this run"
    parts = [f"{_share(requests):.0%} of the requests in the engine"]
    if not math.isnan(tokens):
        parts.append(f"{_share(tokens):.0%} of its tokens")
    return f"other traffic: about {' and '.join(parts)} are not from this run"


def requests_text(requests: float, *, in_flight: float, foreign: float) -> str:
    """Return how many of the requests in the engine are those of other clients; the arguments as in serves_others()."""
    if math.isnan(requests):
        return f"about {foreign:.0f} requests in the engine are not from this run"
    total = in_flight * (1 + requests)
    return f"about {total - in_flight:.0f} of {total:.0f} requests in the engine are not from this run"


def _share(excess: float) -> float:
    """Return the fraction of the engine's total that exceeds the client's, from engine / client - 1."""
    return 1 - 1 / (1 + excess)
