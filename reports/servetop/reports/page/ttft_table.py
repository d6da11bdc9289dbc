"""Where the time to first token goes: its parts in each stage, as the dashboard computes them, as bars and figures."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from servetop.analysis.diagnosis.run_record import RunRecord
from servetop.analysis.summary.summary_types import StageSummary
from servetop.analysis.ttft_breakdown import TtftBreakdown, ttft_breakdown, without_unknown_wait
from servetop.core.interfaces.run_source import NOT_IMPORTED
from servetop.core.text import formats
from servetop.reports.page.figure_tables import stage_name
from servetop.reports.page.html_text import Markup, data_table, element, joined
from servetop.reports.page.report_page import ReportPage

_PARTS: Mapping[str, tuple[str, str | None]] = {
    "client": ("Client wait", "2 2"),
    "network": ("Network", "1 3"),
    "queue": ("Engine queue", None),
    "prefill": ("Prefill", "5 1"),
    "engine": ("Queue + prefill", None),
    "unexplained": ("Not explained", "1 6"),
}
"""Name and dashes of each part, in the order of a request's path; `engine` is queue and prefill not separated."""
_EXPORTED = {
    "network": ("first_token_seconds_total",),
    "queue": ("queue_seconds_total",),
    "prefill": ("prefill_seconds_total",),
}
"""Fields of EngineSample that a part needs."""
_WIDTH, _HEIGHT = 240, 12
_LEAST_SHARE = 0.01
"""Fraction of TTFT below which the unexplained rest is left out."""


def ttft_section(page: ReportPage) -> Markup | None:
    """Return the section with a row for each stage; None without TTFT, or of an imported run without engine times."""
    found = list(_of_stages(page.record, page.summary.stages))
    known = [name for name in _PARTS if any(not math.isnan(parts[name]) for _, _, parts in found)]
    least = {"unexplained"} if page.summary.imported is None else {"unexplained", "client"}
    if set(known) <= least:
        return None
    rows = [
        (
            stage,
            formats.seconds(whole.total),
            _bar({name: parts[name] for name in known}),
            *(formats.seconds(parts[name]) for name in known),
        )
        for stage, whole, parts in found
    ]
    heads = [joined(_key(name), _PARTS[name][0]) for name in known]
    caption = "Mean time to first token, from due, by part"
    return element(
        "section",
        element("h2", "Where TTFT goes"),
        element("p", " ".join(_notes(page, [whole for _, whole, _ in found], known)), class_="note"),
        element("div", data_table(("Stage", "TTFT", "Share", *heads), rows, caption=caption), class_="ttft-parts"),
    )


def _of_stages(
    record: RunRecord, stages: Sequence[StageSummary]
) -> Iterator[tuple[str, TtftBreakdown, dict[str, float]]]:
    """Yield name, breakdown and parts (seconds, NaN if unknown) of each stage in which a first token arrived."""
    for stage in stages:
        first = record.history.first_from(stage.start)
        stop = record.history.up_to(record.until if stage.end is None else stage.end)
        if stop <= first:
            continue
        found = ttft_breakdown(record.history, first, stop)
        if found.requests:
            whole = without_unknown_wait(found, imported=record.header.imported is not None)
            yield stage_name(stage), whole, _named_parts(whole)


def _named_parts(whole: TtftBreakdown) -> dict[str, float]:
    rest = whole.unexplained
    return {
        "client": whole.client_queue,
        "network": whole.network,
        "queue": whole.engine_queue,
        "prefill": whole.prefill,
        "engine": whole.at_engine,
        "unexplained": rest if rest > _LEAST_SHARE * whole.total else math.nan,
    }


def _notes(page: ReportPage, found: Sequence[TtftBreakdown], known: Sequence[str]) -> Iterator[str]:
    """Yield what the parts are, and which of them are unknown, estimated, or still waited for, a sentence each."""
    yield (
        "Means of the requests whose first token arrived in the stage. Client wait: from due to sent; network: between "
        "client and engine; then the engine's queue, and prefill."
    )
    split = "engine" not in known
    unknown = [name for name in _EXPORTED if name not in known and (split or name == "network")]
    if not split:
        yield "Where the queue and prefill times of the engine do not add up to its TTFT, they are not separated."
    if unknown:
        names = ", ".join(_PARTS[name][0].lower() for name in unknown)
        yield f"Not known: {names} ({_why_unknown(page.record, unknown)})."
    if any(each.queue_from > 0 for each in found):
        yield "Where the engine's own times miss those of the stage, the queue is estimated from the requests waiting."
    waiting = sum(each.has_waiting for each in found)
    if waiting:
        stages = "a stage" if waiting == 1 else f"{waiting} stages"
        yield f"At the end of {stages} requests still waited for their first token: they are not in its means."


def _why_unknown(record: RunRecord, parts: Sequence[str]) -> str:
    facts = record.header.engine
    fields = {field for name in parts for field in _EXPORTED[name]}
    if record.header.imported is not None:
        return NOT_IMPORTED
    if facts is not None and fields <= set(facts.not_exported):
        return f"not exported by {facts.title}"
    return "not measured in these stages"


def _bar(parts: Mapping[str, float]) -> Markup:
    """Return a bar in which each part is as long as its share of the known ones."""
    whole = sum(each for each in parts.values() if each > 0) or 1.0
    drawn, left = list[Markup](), 0.0
    for name, seconds in parts.items():
        length = _WIDTH * max(seconds, 0.0) / whole if seconds > 0 else 0.0
        if length >= 0.5:
            drawn.append(_stroke(name, left, left + length))
        left += length
    label = ", ".join(f"{_PARTS[name][0]} {formats.seconds(each)}" for name, each in parts.items() if each > 0)
    return element(
        "svg", *drawn, viewBox=f"0 0 {_WIDTH} {_HEIGHT}", class_="part", role="img", aria_label=label,
        preserveAspectRatio="none",
    )  # fmt: skip


def _key(name: str) -> Markup:
    return element("svg", _stroke(name, 0, 18), viewBox=f"0 0 18 {_HEIGHT}", class_="part key", aria_hidden="true")


def _stroke(name: str, left: float, right: float) -> Markup:
    middle = f"M{left:.1f} {_HEIGHT / 2:g}H{right:.1f}"
    return element("path", d=middle, class_=name, stroke_dasharray=_PARTS[name][1])
