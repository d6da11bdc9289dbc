"""Costs per token and per request, from a price per hour and the throughput of a period.

The price of an hour is distributed over what was served in it: equally over requests and over tokens, and over input,
cached and output tokens in proportion to weights. All costs times their amounts add up to the price. An interval is
that of the throughput within this start, by batch means over ticks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from servetop.analysis.columns.run_columns import Period, RunColumns
from servetop.analysis.cost.hourly_price import MILLION, SECONDS_PER_HOUR, hourly_cost
from servetop.analysis.statistics.batch_means import standard_error
from servetop.analysis.statistics.student_t import quantile
from servetop.analysis.summary.cost_summary import BreakEven, CostSummary, Interval
from servetop.analysis.summary.summary_types import RequestSummary
from servetop.core.arrays import FloatArray
from servetop.core.config_values.price import HourlyPrice, Prices, TokenPrices

ASSUMED_WEIGHTS = (1.0, 0.1, 4.0)
"""Weights of input, cached and output tokens without prices per token: about the ratios of public price lists."""
_CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedRates:
    """What was served per second; the relative half-widths of the intervals are infinite if unknown."""

    requests: float
    prompt_tokens: float
    output_tokens: float
    cached_share: float | None
    """Fraction of the prompt tokens that was cached; None if unknown."""
    requests_error: float = math.inf
    tokens_error: float = math.inf
    weighted_error: float = math.inf
    """Half-width for the tokens, each counted by its weight."""

    @property
    def tokens(self) -> float:
        """Tokens/s of all kinds."""
        return self.prompt_tokens + self.output_tokens

    def weighted(self, weights: tuple[float, float, float]) -> float:
        """Return the tokens/s, each by the weight of its kind (input, cached, output)."""
        return self.prompt_tokens * prompt_weight(weights, self.cached_share) + self.output_tokens * weights[2]


def prompt_weight(weights: tuple[float, float, float], cached_share: float | None) -> float:
    """Return the mean weight of a prompt token of which a share is cached."""
    share = cached_share or 0.0
    return weights[0] * (1 - share) + weights[1] * share


def weights_of(prices: Prices) -> tuple[float, float, float]:
    """Return the weights of input, cached and output tokens: those of a price list, else ASSUMED_WEIGHTS."""
    return prices.other.weights if isinstance(prices.other, TokenPrices) else ASSUMED_WEIGHTS


def served_rates(
    requests: RequestSummary,
    cached_share: float | None,
    *,
    weights: tuple[float, float, float],
    run: RunColumns,
    steady_in: Period | None,
) -> ServedRates:
    """Return the rates of a summary; their intervals are those of the ticks of `steady_in`, a time of constant load."""
    output = requests.output_throughput or 0.0
    rates = ServedRates(
        requests=requests.request_throughput or 0.0,
        prompt_tokens=(requests.total_token_throughput or 0.0) - output,
        output_tokens=output,
        cached_share=cached_share,
    )
    if steady_in is None:
        return rates
    within = steady_in.contains(run.load_ticks.start)
    prompts, outputs = run.prompt_tokens[within], run.output_tokens[within]
    by_weight = prompts * prompt_weight(weights, cached_share) + outputs * weights[2]
    return ServedRates(
        requests=rates.requests,
        prompt_tokens=rates.prompt_tokens,
        output_tokens=rates.output_tokens,
        cached_share=cached_share,
        requests_error=_relative_error(run.ok[within]),
        tokens_error=_relative_error(prompts + outputs),
        weighted_error=_relative_error(by_weight),
    )


def _relative_error(by_tick: FloatArray) -> float:
    """Return the half-width of the interval of the mean, as a fraction of it; infinite with too few ticks."""
    error = standard_error(by_tick)
    mean = float(by_tick.mean()) if by_tick.size else 0.0
    if not mean > 0 or math.isinf(error.value):
        return math.inf
    return quantile(0.5 + _CONFIDENCE / 2, error.df) * error.value / mean


def cost_summary(prices: Prices, rates: ServedRates, *, gpus: int | None) -> CostSummary:
    """Return the costs at these rates; `gpus` is how many the engine uses, None if unknown."""
    weights, per_hour = weights_of(prices), hourly_cost(prices.server, gpus)
    weighted = rates.weighted(weights)
    per_second = math.nan if per_hour is None else per_hour / SECONDS_PER_HOUR
    unit = _per(per_second * MILLION, weighted)
    by_kind = [None if unit is None else unit * weight for weight in weights]
    if rates.cached_share is None:
        by_kind[1] = None
    per_request, per_million = _per(per_second, rates.requests), _per(per_second * MILLION, rates.tokens)
    of_input, of_cached, of_output = (_interval(each, rates.weighted_error) for each in by_kind)
    return CostSummary(
        price=prices.server.text,
        currency=prices.server.currency or None,
        per_hour=per_hour,
        per_request=per_request,
        per_million_tokens=per_million,
        per_million_input_tokens=by_kind[0],
        per_million_cached_tokens=by_kind[1],
        per_million_output_tokens=by_kind[2],
        per_request_interval=_interval(per_request, rates.requests_error),
        per_million_tokens_interval=_interval(per_million, rates.tokens_error),
        per_million_input_tokens_interval=of_input,
        per_million_cached_tokens_interval=of_cached,
        per_million_output_tokens_interval=of_output,
        weights=weights,
        weights_assumed=not isinstance(prices.other, TokenPrices),
        cached_share=rates.cached_share,
        reason=_reason(per_hour, rates),
        break_even=None if prices.other is None else _break_even(prices.other, per_hour, rates, gpus=gpus),
    )


def _per(cost: float, amount: float) -> float | None:
    """Return the cost of each; None if nothing was served or the cost is unknown."""
    return cost / amount if amount > 0 and not math.isnan(cost) else None


def _interval(cost: float | None, error: float) -> Interval | None:
    return None if cost is None or not error < 1 else (cost / (1 + error), cost / (1 - error))


def _reason(per_hour: float | None, rates: ServedRates) -> str | None:
    if per_hour is None:
        return "no GPU is recorded: give the price of all that serves, as in 2.5/h"
    return None if rates.tokens > 0 else "no request was completed"


def _break_even(
    other: HourlyPrice | TokenPrices, per_hour: float | None, rates: ServedRates, *, gpus: int | None
) -> BreakEven:
    if isinstance(other, TokenPrices):
        worth = rates.weighted(other.weights) / MILLION * SECONDS_PER_HOUR
        factor = None if per_hour is None else _per(per_hour, worth)
    else:
        worth, others = math.nan, hourly_cost(other, gpus)
        factor = None if per_hour is None or others is None else others / per_hour
    return BreakEven(
        price=other.text,
        kind="tokens" if isinstance(other, TokenPrices) else "server",
        request_throughput=None if factor is None else rates.requests * factor,
        total_token_throughput=None if factor is None else rates.tokens * factor,
        cost_of_tokens=None if math.isnan(worth) else worth,
    )
