"""The page of two recordings: the result first, other causes, each difference, and both side by side."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from servetop.analysis.comparison.report_types import ArmComparison
from servetop.reports.comparison.comparison_text import (
    NO_CAUSE,
    NOT_RECORDED,
    arm_text,
    break_even_lines,
    cause_lines,
)
from servetop.reports.comparison.run_pairs_advice import time_text
from servetop.reports.page.comparison_page import ComparisonPage
from servetop.reports.page.difference_table import difference_tables
from servetop.reports.page.figure_tables import costs_table, definitions, stages_table
from servetop.reports.page.html_file import charts_section, details, footer, html_file, limits_section
from servetop.reports.page.html_text import Markup, command_line, commands_list, data_table, element, items, joined
from servetop.reports.page.latency_charts import compared_distributions, load_charts
from servetop.reports.page.paired_charts import paired_charts, paired_columns
from servetop.reports.page.paired_tables import paired_latencies, paired_manifest, paired_totals
from servetop.reports.page.report_page import ReportPage


def comparison_html(page: ComparisonPage) -> str:
    """Return the whole file."""
    return html_file(f"{_name(page, 'A')} and {_name(page, 'B')}", _sections(page), _data(page))


def _name(page: ComparisonPage, letter: str) -> str:
    return page.report.a.name if letter == page.report.a.letter else page.comparison.b.name


def _sections(page: ComparisonPage) -> list[Markup | None]:
    summaries = {letter: each.summary for letter, each in page.pages.items()}
    return [
        _heading(page),
        element("section", element("h2", "Measured differences"), difference_tables(page.report)),
        element(
            "section",
            element("h2", "Figures"),
            element("div", paired_latencies(summaries), paired_totals(summaries), class_="tables"),
            *(stages_table(summary, letter) for letter, summary in summaries.items()),
            *(costs_table(summary, letter) for letter, summary in summaries.items()),
        ),
        limits_section(_limits_note(page)),
        charts_section(_chart_help(page)),
        details("Definitions", definitions()),
        details("Manifests: what was measured", paired_manifest({k: each.manifest for k, each in page.pages.items()})),
        element("section", element("h2", "Repeat it"), _repeat_part(page)),
        footer(next(iter(page.pages.values())).record.header.versions.get("servetop", "")),
    ]


def _heading(page: ComparisonPage) -> Markup:
    found = page.comparison
    first, *rest = found.headline.split("; ")
    parts = [
        element("section", element("h2", "What was compared"), _arms(page)),
        element("section", element("h2", f"What differs between A and {found.b.letter}"), _changes(found)),
        element("section", element("h2", "Try next"), _try_next(found)),
        element("section", element("h2", "Other causes than the change"), _causes(found)),
    ]
    return joined(
        element(
            "header",
            element("p", f"A: {page.report.a.name} · {found.b.letter}: {found.b.name}", class_="subject"),
            element("h1", first),
            *(element("p", f"{each[:1].upper()}{each[1:]}.", class_="figures") for each in rest),
            *(element("p", f"⚠ {text}", class_="answer") for text in found.warnings),
        ),
        element("div", *parts, class_="answers"),
    )


def _arms(page: ComparisonPage) -> Markup:
    arms = {each.letter: each for each in (page.report.a, page.comparison.b)}
    rows = [(letter, joined(arm_text(arms[letter]), _verdict_of(each))) for letter, each in page.pages.items()]
    return data_table(("", "Run"), rows, caption="The two runs")


def _verdict_of(page: ReportPage) -> Markup | None:
    story = page.summary.story
    return None if story is None else element("p", element("strong", story.headline), class_="verdict")


def _changes(found: ArmComparison) -> Markup:
    rows = [(each.key, each.a or NOT_RECORDED, each.b or NOT_RECORDED) for each in found.differences]
    table = data_table(("", "A", found.b.letter), rows, caption="Settings that differ") if rows else None
    unknown = f"Recorded of one only: {', '.join(found.unknown)}" if found.unknown else None
    return joined(
        table or element("p", "No setting that both recordings have differs."),
        element("p", unknown, class_="note") if unknown else None,
    )


def _causes(found: ArmComparison) -> Markup:
    lines = cause_lines(found)
    return items("ul", lines) if lines else element("p", f"{NO_CAUSE[:1].upper()}{NO_CAUSE[1:]}.")


def _try_next(found: ArmComparison) -> Markup:
    lines = list(_advice(found))
    return joined(*lines) if lines else element("p", "No further measurement is advised by this comparison.")


def _advice(found: ArmComparison) -> Iterator[Markup]:
    if found.run_pairs is not None:
        text = f"Alternate both configurations until their difference is known, {time_text(found.run_pairs)}:"
        yield element("p", text, command_line(found.run_pairs.command))
    yield from (element("p", f"Break-even at {line}") for line in break_even_lines(found))
    for name, loads in (("A", found.only_a), (found.b.letter, found.only_b)):
        if loads:
            yield element("p", f"Only in {name}, so not compared: {', '.join(loads)}")


def _repeat_part(page: ComparisonPage) -> Markup:
    names = [each.name for each in page.pages.values()]
    commands = {
        "Compare them again": ("servetop", "compare", *names),
        **{f"Repeat {letter}": ("servetop", "rerun", each.name) for letter, each in page.pages.items()},
        **{f"The report of {letter} alone": ("servetop", "report", each.name) for letter, each in page.pages.items()},
    }
    return commands_list({what: shlex.join(words) for what, words in commands.items()})


def _limits_note(page: ComparisonPage) -> str:
    text = "The requests of both runs that ended are counted again at each step."
    shares = [each.rows.bin_share for each in page.pages.values() if each.rows.bin_share is not None]
    if not shares:
        return text
    return (
        f"{text} Large runs are counted in bins of {max(shares):.0%} of their latency: exact at the recorded limits, "
        "else up to one bin too low."
    )


def _chart_help(page: ComparisonPage) -> str:
    seconds = max(each.time.seconds for each in page.pages.values())
    bins = "one second" if seconds == 1 else f"{seconds:g} seconds"
    return (
        f"Both runs begin at 0:00, with their load. A point is {bins}. Drag to zoom all charts, double-click or Escape "
        "to zoom out; arrow keys move the cursor of a focused chart. Click a name to hide its line."
    )


def _data(page: ComparisonPage) -> dict[str, object]:
    return {
        "objectives": dict(page.objectives),
        "runs": [each.run_data(letter) for letter, each in page.pages.items()],
        "time": paired_columns(page.pages).as_data(),
        "charts": [each.as_data() for each in paired_charts(page.pages)],
        "episodes": [],
        "starts": [],
        "distributions": compared_distributions(page.pages),
        "heat": {},
        "load": load_charts({letter: each.summary for letter, each in page.pages.items()}),
        "search": None,
    }
