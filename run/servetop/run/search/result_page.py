"""The page of a recording as `servetop report` writes it, with the answers of a search."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

from servetop.core.errors import UsageError
from servetop.core.text import formats
from servetop.core.text.counted import counted
from servetop.recordings.library.catalog import resolve
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.page.page_html import page_html
from servetop.reports.page.picture import run_picture, watch_picture
from servetop.reports.page.report_page import SearchTexts, report_page
from servetop.reports.page.watch_page import watch_html, watch_page
from servetop.reports.plug_ins.report_sections import plug_in_sections
from servetop.reports.summary.summary import run_summary
from servetop.run.search.answer_line import answer_line
from servetop.run.search.search_result import Confirmation, SearchResult, search_result


def recording_html(
    name: str, *, prices: Sequence[str] = (), on_trouble: Callable[[str], None] = lambda _line: None
) -> str:
    """Return the page of one recording; RecordingError if it cannot be read, UsageError for prices without sense.

    `on_trouble` is called with a line for each plug-in whose section is left out.
    """
    with contextlib.closing(RecordingReader.open(resolve(name))) as reader:
        if reader.header.config.watch is not None:
            if prices:
                raise UsageError("--price: a watch has no requests of its own: leave it out")
            return watch_html(watch_page(reader, name=name))
        page = report_page(reader, name=name, prices=prices, texts=search_texts(reader))
        added = plug_in_sections(reader)
        for line in added.trouble:
            on_trouble(line)
        return page_html(page, further=added.sections)


def recording_picture(name: str) -> str:
    """Return the picture of one recording as SVG; RecordingError if it cannot be read."""
    with contextlib.closing(RecordingReader.open(resolve(name))) as reader:
        if reader.header.config.watch is not None:
            return watch_picture(watch_page(reader, name=name))
        return run_picture(report_page(reader, name=name, texts=search_texts(reader)))


def search_texts(reader: RecordingReader) -> SearchTexts:
    """Return the texts of a search; none for other runs."""
    if reader.header.config.search is None:
        return SearchTexts()
    result = search_result(reader, run_summary(reader))
    remarks = [] if result.confirmation is None else [_confirmation_text(result.confirmation)]
    remarks += [f"Warning: {text}" for text in result.warnings]
    return SearchTexts(
        answers=[answer_line(result, tier) for tier in result.tiers],
        remarks=[*remarks, f"Load: {load_used(result)}"],
        unfinished=not result.complete,
    )


def _confirmation_text(found: Confirmation) -> str:
    """Return the confirmation as a sentence for a page."""
    return f"{'Confirmed' if found.kept else 'Not kept when it was confirmed'}: {found.text}"


def load_used(result: SearchResult) -> str:
    """Return the time of load of the budget that was used, and the number of loads."""
    budget = f"{formats.clock(round(result.seconds))} of {formats.clock(result.budget)}"
    return f"{budget}, {counted(result.probes, 'probe')}"
