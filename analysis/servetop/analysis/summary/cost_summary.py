"""The costs of a period in a summary; docs/reference/metrics.md defines each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

Interval: TypeAlias = tuple[float, float]
"""Both ends of a 95 % interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakEven:
    """Where the server and an alternative cost the same; None if unknown."""

    price: str
    """The alternative, as written."""
    kind: str
    """`server`: another server at a price per hour; `tokens`: the same requests at prices per token."""
    request_throughput: float | None
    """Requests/s from which on the server costs less than the `tokens`, or that the other `server` has to serve to
    cost as much per request."""
    total_token_throughput: float | None
    """The same in tokens/s."""
    cost_of_tokens: float | None
    """What the tokens served in an hour cost at prices per token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostSummary:
    """Costs per token and per request, of the time in which the requests were served; None if unknown."""

    price: str
    """The price of the server, as written."""
    currency: str | None
    per_hour: float | None
    """The price of everything that serves."""
    per_request: float | None
    per_million_tokens: float | None
    """The same for input, cached and output tokens."""
    per_million_input_tokens: float | None
    per_million_cached_tokens: float | None
    per_million_output_tokens: float | None
    per_request_interval: Interval | None
    per_million_tokens_interval: Interval | None
    per_million_input_tokens_interval: Interval | None
    per_million_cached_tokens_interval: Interval | None
    per_million_output_tokens_interval: Interval | None
    weights: tuple[float, float, float]
    """Costs of an input, a cached and an output token, relative to each other."""
    weights_assumed: bool
    """Whether the weights are an assumption, because no prices per token were given."""
    cached_share: float | None
    """Fraction of the prompt tokens that the engine had cached; if unknown, all count as input."""
    reason: str | None
    """Why the costs are None."""
    break_even: BreakEven | None = field(default=None, metadata={"omitted": True})
