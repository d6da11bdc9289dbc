"""The answer of a search on the terminal or as JSON."""

from __future__ import annotations

from servetop.analysis.summary.summary_json import plain_object
from servetop.analysis.summary.summary_types import RunSummary
from servetop.core.config_values.search_config import MAX_CONCURRENCY
from servetop.core.text import formats
from servetop.core.text.counted import counted
from servetop.core.text.sanitize import sanitize_line
from servetop.recordings.read.reader import RecordingReader
from servetop.run import console
from servetop.run.search.search_answer import AnswerKind
from servetop.run.search.search_result import SearchResult, TierResult, search_result


def search_lines(result: SearchResult) -> list[str]:
    """Return a sentence for each tier, and the lines that support it."""
    lines = [f"answer     {tier.text}{_cost(result, tier)}{_above(tier)}" for tier in result.tiers]
    if result.confirmation is not None:
        label = "confirmed " if result.confirmation.kept else "not kept  "
        lines.append(f"{label} {result.confirmation.text}")
    lines += [f"warning    {text}" for text in result.warnings]
    budget = f"{formats.clock(round(result.seconds))} of {formats.clock(result.budget)}"
    lines.append(f"load       {budget}, {counted(result.probes, 'probe')}")
    if not result.complete:
        lines.append(f"unfinished to continue: servetop search --resume {result.recording}")
    return [sanitize_line(line) for line in lines]


def _cost(result: SearchResult, tier: TierResult) -> str:
    """What the load of an answer costs; nothing for one that is not known, or not the one that was measured."""
    price, load = result.cost_per_million_output_tokens, result.cost_load
    known = tier.kind in (AnswerKind.FOUND, AnswerKind.CLIFF, AnswerKind.ABOVE) and len(result.tiers) == 1
    if not known or price is None or load is None:
        return ""
    unit = "in flight" if result.over == MAX_CONCURRENCY else "req/s"
    at = f"{formats.rate_number(load)} {unit}"
    return f", for {formats.money(price, result.currency)} per million output tokens at {at}"


def _above(tier: TierResult) -> str:
    return f" ({tier.binding_text})" if tier.binding_text else ""


def print_search(reader: RecordingReader, summary: RunSummary, *, as_json: bool) -> None:
    """Print the answer of a search, and where it is recorded."""
    result = search_result(reader, summary)
    if as_json:
        console.out_json(plain_object(result))
    else:
        console.out(*search_lines(result), f"recording  {result.recording}")
