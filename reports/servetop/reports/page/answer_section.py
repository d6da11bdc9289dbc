"""The beginning of a page: the verdict, why, what sets the capacity, whether to trust it, and what to try next."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator

from servetop.analysis.summary.story_summary import StoryLineSummary, StorySummary
from servetop.analysis.summary.summary_types import RunSummary
from servetop.core.interfaces.run_source import NOT_IMPORTED
from servetop.core.text import formats
from servetop.core.units import MS_PER_S
from servetop.reports.page.floor_table import floor_table
from servetop.reports.page.html_text import Markup, command_line, data_table, element, items, joined
from servetop.reports.page.next_commands import next_commands
from servetop.reports.page.report_page import ReportPage
from servetop.reports.summary.summary_lines import trust_lines, unsteady_sentences

_ENGINE, _OBJECTIVE, _MEMORY, _CLIENT = "Engine", "Latency objective", "KV memory", "Client"
_SET_BY = {
    "KV-bound": _MEMORY,
    "batch-bound": _ENGINE,
    "rate above capacity": _ENGINE,
    "long prompts": _ENGINE,
    "overloaded": _ENGINE,
    "objectives missed": _OBJECTIVE,
    "concurrency-limited": _CLIENT,
    "client-bound": _CLIENT,
}
"""The row of the capacities that a cause is about; none for other causes."""
_WHY_UNKNOWN = {
    "client-bound": "the client limited the load, not the engine",
    "network-bound": "the network limited the load, not the engine",
    "other traffic": "requests of others were part of the load",
    "failing": "requests failed",
    "engine failed": "the engine failed",
    "stalled": "the engine stalled",
    "unclear": "what limited the run is unclear",
    "objectives missed": "requests missed the objectives",
    "no load": "there was no load",
}
"""Why a run of a cause tells no rate that keeps the latency objective."""


def answer_section(page: ReportPage) -> Markup:
    """Return the heading with the verdict, and below it the parts that explain it."""
    summary = page.summary
    parts = [
        element("section", element("h2", "What happened"), _story(summary.story)),
        element("section", element("h2", "Capacity"), _capacity(page)),
        element("section", element("h2", "Try next"), _try_next(page)),
        element("section", element("h2", "Trust"), _trust(summary)),
    ]
    if page.floor is not None:
        floor = floor_table(page.floor, summary)
        parts.append(element("section", element("h2", "Physical floor"), floor, class_="floor"))
    return joined(
        element(
            "header",
            element("p", " · ".join(subject_parts(page)), class_="subject"),
            element("h1", verdict_sentence(page)),
            *(element("p", each, class_="answer") for each in page.texts.answers[1:]),
            *(element("p", each, class_="figures") for each in page.texts.remarks),
            element("p", " · ".join(_figures(summary)), _trust_remark(summary), class_="figures"),
        ),
        element("div", *parts, class_="answers"),
    )


def verdict_sentence(page: ReportPage) -> str:
    """Return the first answer of a search, else the headline of the story, else why there is none."""
    if page.texts.answers:
        return page.texts.answers[0]
    story = page.summary.story
    return (page.summary.error or "the recording has no requests yet") if story is None else story.headline


def subject_parts(page: ReportPage) -> Iterator[str]:
    """Yield what was measured, and when."""
    summary, facts = page.summary, page.record.header.engine
    if summary.set_up.label:
        yield summary.set_up.label
    title = page.record.header.config.engine.known_as if facts is None else facts.title
    yield f"{title} {summary.engine.version}" if summary.engine.version else title
    if summary.set_up.model_id:
        yield summary.set_up.model_id
    yield from page.gpus
    if summary.predicted:
        yield "computed by the simulator"
    if summary.imported:
        yield f"imported from {summary.imported}"
    yield page.manifest["run"]["start"]
    if summary.recording_state != "finished":
        yield f"recording {summary.recording_state}"


def _trust_remark(summary: RunSummary) -> Markup | None:
    """Return the verdict of the trust meter, of which the section has the reasons; None if all is well."""
    verdict = summary.measured.trust.verdict
    if verdict == "ok":
        return None
    return joined(" · ", element("strong", f"trust: {verdict}", class_=f"trust {verdict.split()[0]}"))


def _figures(summary: RunSummary) -> Iterator[str]:
    requests = summary.requests
    yield f"{requests.completed:,} requests in {formats.clock(requests.duration)}"
    if requests.failed:
        yield f"{requests.failed:,} failed"
    yield f"{formats.number(requests.request_throughput)} req/s"
    yield f"{formats.number(requests.output_throughput)} output tok/s"
    for metric, label in (("ttft", "TTFT"), ("tpot", "TPOT")):
        p99 = requests.latency(metric, "p99")
        if p99 is not None:
            yield f"{label} p99 {formats.seconds(p99 / MS_PER_S)}"


def _story(story: StorySummary | None) -> Markup:
    lines = [] if story is None else [each for each in story.lines if not each.advice]
    if not lines:
        return element("p", "Nothing happened that needs an explanation.")
    return items("ol", [_story_line(each) for each in lines], class_="story")


def _story_line(line: StoryLineSummary) -> Markup:
    if line.at is None:
        return joined(element("span", "", class_="at"), element("span", line.text))
    return joined(element("time", formats.clock(line.at), class_="at"), element("span", line.text))


def _capacity(page: ReportPage) -> Markup:
    summary, story = page.summary, page.summary.story
    set_by = None if story is None or summary.sweep is not None else _SET_BY.get(story.cause)
    rows = [(name, text) for name, text in _capacities(page) if text]
    if set_by == _CLIENT and story is not None:
        rows.append((_CLIENT, story.cause))
    marked = [
        (element("strong", f"▸ {name}"), joined(element("strong", "sets the limit"), f" · {text}"))
        if name == set_by
        else (name, text)
        for name, text in rows
    ]
    return data_table(("Limit of", "What was measured"), marked, caption="What limits the load")


def _capacities(page: ReportPage) -> Iterator[tuple[str, str]]:
    summary, server = page.summary, page.summary.measured.server
    yield _ENGINE, _engine_capacity(summary)
    yield _OBJECTIVE, _within_objective(page)
    used = [] if server.max_kv_usage is None else [f"{formats.percent(server.max_kv_usage)} used at most"]
    blocks = summary.engine.kv_blocks_total
    used += [f"of {blocks:,} blocks"] if used and blocks else []
    preempted = "" if server.preemptions is None else f"{formats.exact(server.preemptions)} preemptions"
    unknown = NOT_IMPORTED if summary.imported else "not exported by the engine"
    yield _MEMORY, ", ".join(filter(None, (" ".join(used), preempted))) or unknown


def _engine_capacity(summary: RunSummary) -> str:
    story = summary.story
    if summary.sweep is not None:
        return "of each cell: in the tables of the sweep"
    if story is not None and story.capacity is not None:
        return f"completed {_rate(story.capacity)} while requests waited"
    if story is not None and story.cause in ("headroom", "objectives missed"):
        return "not reached in this run"
    return "no estimate from this run"


def _within_objective(page: ReportPage) -> str:
    """Return the rate that keeps the objective, or that it is not known, and why as far as that is known."""
    summary, story = page.summary, page.summary.story
    if page.search is not None:
        return "the answer of the search, above"
    if summary.sweep is not None:
        return "of each batch size: in What happened"
    if story is not None and story.sustainable_rate is not None:
        return _sustainable(story)
    return ": ".join(filter(None, ("not known from this run", _why_unknown(summary))))


def _why_unknown(summary: RunSummary) -> str:
    if summary.story is None:
        return summary.error or ""
    rates = [each.request_rate for each in summary.stages]
    if rates and all(rate is not None and math.isinf(rate) for rate in rates):
        limited = any(each.max_concurrency is not None for each in summary.stages)
        return (
            "a closed loop has no request rate" if limited or not summary.imported else "the file has no request rate"
        )
    metrics = {each.split(":")[0] for each in summary.set_up.goodput or ()}
    if metrics - {"ttft"}:
        return "with limits besides TTFT no rate is estimated"
    return _WHY_UNKNOWN.get(summary.story.cause, "")


def _sustainable(story: StorySummary) -> str:
    rate, interval = story.sustainable_rate or 0.0, story.sustainable_rate_interval
    limit = "" if story.ttft_objective_ms is None else f" with TTFT ≤ {story.ttft_objective_ms:g} ms"
    if story.sustainable_is_lower_bound:
        return f"at least {_rate(rate)}{limit}"
    between = [
        f"{ends[0]:.3g} to {ends[1]:.3g} with a probability of {share}\u00a0%"
        for ends, share in ((interval, 90), (story.sustainable_rate_range, 99))
        if ends is not None
    ]
    return f"about {_rate(rate)}{limit}{': ' if between else ''}{', '.join(between)}"


def _rate(value: float) -> str:
    return f"{formats.rate_number(value)} req/s"


def trust_texts(summary: RunSummary) -> list[str]:
    """Return why the verdict of the trust meter is what it is, then what else limits the figures, a text for each."""
    lines = [" ".join(each.split()) for each in (*trust_lines(summary), *unsteady_sentences(summary.stages))]
    return [lines[0].removeprefix("trust ").removeprefix(f"{summary.measured.trust.verdict}: "), *lines[1:]]


def _trust(summary: RunSummary) -> Markup:
    first, *others = trust_texts(summary)
    verdict = summary.measured.trust.verdict
    return joined(
        element("p", element("strong", verdict, class_=f"trust {verdict.split()[0]}"), f" · {first}"),
        items("ul", others) if others else None,
    )


def _try_next(page: ReportPage) -> Markup:
    story = page.summary.story
    advice = [] if story is None else [each.text for each in story.lines if each.advice]
    commands = list(next_commands(page))
    if not advice and not commands:
        return element("p", "No change is advised by this run.")
    ranked = [joined(text, command_line(shlex.join(words))) for text, words in commands]
    return joined(items("ul", advice) if advice else None, items("ol", ranked, class_="ranked") if ranked else None)
