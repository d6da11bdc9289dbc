"""The costs of a run as texts: of all of it, and of each stage in its steady window, for the terminal and the page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from servetop.analysis.summary.cost_summary import BreakEven, CostSummary, Interval
from servetop.analysis.summary.summary_types import StageSummary
from servetop.core.text import formats

COST_COLUMNS = ("", "per M tokens", "input", "cached", "output", "per 1,000 requests")


@dataclass(frozen=True, slots=True, kw_only=True)
class StageCosts:
    """The texts of the table of costs."""

    title: str
    rows: Sequence[Sequence[str]]
    """The texts of COST_COLUMNS of each stage."""


def cost_rows(cost: CostSummary | None) -> Iterator[tuple[str, str]]:
    """Names and values for the table of totals; none without a price."""
    if cost is None:
        return
    if cost.reason:
        yield f"Cost at {cost.price}", f"{formats.UNKNOWN} ({cost.reason})"
        return
    currency = cost.currency
    yield f"Cost per million tokens at {cost.price}", formats.money(cost.per_million_tokens, currency)
    yield "  input / cached / output", _split(cost)
    yield "Cost per thousand requests", formats.money(_thousand(cost.per_request), currency)
    if cost.break_even is not None:
        yield f"Break-even with {cost.break_even.price}", _break_even(cost.break_even)


def _split(cost: CostSummary) -> str:
    """The costs by kind of token, and the weights behind them: `0.21 / 0.021 / 0.84 (at 1 : 0.1 : 4, assumed)`."""
    kinds = (cost.per_million_input_tokens, cost.per_million_cached_tokens, cost.per_million_output_tokens)
    costs = " / ".join(formats.money(each, cost.currency) for each in kinds)
    weights = " : ".join(f"{each:g}" for each in cost.weights)
    return f"{costs} (at {weights}{', assumed' if cost.weights_assumed else ''})"


def _break_even(found: BreakEven) -> str:
    if found.request_throughput is None:
        return formats.UNKNOWN
    rates = f"{formats.number(found.request_throughput)} req/s, {formats.number(found.total_token_throughput)} tok/s"
    return f"from {rates}" if found.kind == "tokens" else f"if it serves {rates}"


def stage_costs(stages: Sequence[StageSummary]) -> StageCosts | None:
    """Return the costs of each stage, in its steady window if it has one; None without a price."""
    costs = [(stage, cost) for stage in stages if (cost := _steady_or_whole(stage)) is not None]
    if not costs or all(cost.reason for _, cost in costs):
        return None
    first = costs[0][1]
    unit = f" in {first.currency}" if first.currency else ""
    return StageCosts(
        title=f"Costs{unit} at {first.price} (steady state with 95 % intervals, else the whole stage)",
        rows=[_row(stage, cost) for stage, cost in costs],
    )


def _row(stage: StageSummary, cost: CostSummary) -> Sequence[str]:
    repeat = f" #{stage.repeat + 1}" if stage.repeat else ""
    return (
        f"{stage.label}{repeat}",
        formats.money_interval(cost.per_million_tokens, cost.per_million_tokens_interval),
        formats.money(cost.per_million_input_tokens),
        formats.money(cost.per_million_cached_tokens),
        formats.money(cost.per_million_output_tokens),
        formats.money_interval(_thousand(cost.per_request), _thousand_of_both(cost.per_request_interval)),
    )


def _thousand(cost: float | None) -> float | None:
    return None if cost is None else cost * 1000


def _thousand_of_both(interval: Interval | None) -> Interval | None:
    return None if interval is None else (interval[0] * 1000, interval[1] * 1000)


def _steady_or_whole(stage: StageSummary) -> CostSummary | None:
    steady = stage.steady.measured
    return stage.measured.cost if steady is None or steady.cost is None else steady.cost
