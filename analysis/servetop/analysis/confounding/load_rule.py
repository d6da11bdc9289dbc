"""Whether more arrived in one of two windows than in the other, although their nominal rates are equal."""

from __future__ import annotations

import math

from servetop.analysis.comparison.arrived_load import ArrivedLoad
from servetop.analysis.comparison.slices import sliced, sliced_pair
from servetop.analysis.comparison.stage_sample import StageSample
from servetop.analysis.confounding.confounder import ALL_METRICS, Confounder, ConfounderKind

ARRIVED_LIMIT = 0.05
"""Relative difference of the arrivals per second that is named: 1,600 Poisson arrivals differ by it in 16 % of them."""


def load_confounder(a: StageSample, b: StageSample, *, tokens: bool = True) -> Confounder | None:
    """Compare the requests, and with `tokens` the tokens, that arrived per second of the compared windows.

    None for a closed loop, whose requests follow the engine, and for runs of the same requests, which are compared one
    by one.
    """
    closed = any(math.isinf(each.load.request_rate) for each in (a, b))
    if closed or any(sliced(each) is None for each in (a, b)) or sliced_pair(a, b) is not None:
        return None
    first, second = ArrivedLoad.of(a), ArrivedLoad.of(b)
    requests = second.request_rate / first.request_rate - 1
    brought = second.token_rate / first.token_rate - 1 if first.tokens > 0 else 0.0
    if max(abs(requests), abs(brought) if tokens else 0.0) <= ARRIVED_LIMIT:
        return None
    in_a, in_b = (
        f"{each.requests:,} {unit}in {each.seconds:.3g} s" for each, unit in ((first, "requests "), (second, ""))
    )
    return Confounder(
        kind=ConfounderKind.LOAD,
        text=f"{in_a} of A and {in_b} of B arrived at one nominal rate, {a.load.label}: "
        f"{requests:+.1%} requests and {brought:+.1%} tokens per second",
        evidence={
            "requests per second": (first.request_rate, second.request_rate),
            "tokens per second": (first.token_rate, second.token_rate),
        },
        metrics=ALL_METRICS,
    )
