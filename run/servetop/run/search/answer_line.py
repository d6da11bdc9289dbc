"""The line of an answer, as the terminal, the summary and the dashboard show it at the end of a search."""

from __future__ import annotations

from servetop.core.config_values.search_config import MAX_CONCURRENCY
from servetop.core.text import formats
from servetop.run.search.search_answer import AnswerKind
from servetop.run.search.search_result import SearchResult, TierResult


def answer_line(result: SearchResult, tier: TierResult) -> str:
    """Return the sentence of an answer with its cost, in brackets what sets the load, and what contradicts it."""
    above = f" ({tier.binding_text})" if tier.binding_text else ""
    return f"{tier.text}{_cost(result, tier)}{above}{_contradiction(result, tier)}"


def _contradiction(result: SearchResult, tier: TierResult) -> str:
    """Return that the load of the confirmation was not kept, if the answer says that it is."""
    if result.confirmation is None or not tier.contradicted:
        return ""
    unit = "in flight" if result.over == MAX_CONCURRENCY else "req/s"
    load = f"{formats.rate_number(result.confirmation.load)} {unit}"
    return f"; but {load} was not kept when it was confirmed: search again with a larger --budget"


def _cost(result: SearchResult, tier: TierResult) -> str:
    """Return what the load of an answer costs; nothing for one that is not known, or not the one that was measured."""
    price, load = result.cost_per_million_output_tokens, result.cost_load
    known = tier.kind in (AnswerKind.FOUND, AnswerKind.CLIFF, AnswerKind.ABOVE) and len(result.tiers) == 1
    if not known or price is None or load is None:
        return ""
    unit = "in flight" if result.over == MAX_CONCURRENCY else "req/s"
    at = f"{formats.rate_number(load)} {unit}"
    return f", for {formats.money(price, result.currency)} per million output tokens at {at}"
