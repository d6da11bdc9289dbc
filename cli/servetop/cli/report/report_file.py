"""`servetop report`: writes a recording as one HTML file that works offline."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

from servetop.cli.options.tool_options import ReportOptions
from servetop.cli.report.whole_file import refuse_target, write_whole
from servetop.core.errors import ExitCode
from servetop.recordings.library.catalog import resolve
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.page.page_html import page_html
from servetop.reports.page.report_page import report_page
from servetop.reports.summary.summary import run_summary
from servetop.run import console
from servetop.run.search.answer_line import answer_line
from servetop.run.search.search_result import search_result


def run_report(options: ReportOptions) -> int:
    """Write the report of a recording and print where it is; OK, whatever its contents."""
    source = resolve(options.file)
    target = options.output or Path(f"{source.stem}.html")
    refuse_target(target, instead="the name of an HTML file, as in -o report.html")
    with contextlib.closing(RecordingReader.open(source)) as reader:
        page = report_page(reader, name=options.file, prices=options.price, answers=_answers(reader))
    write_whole(target, [page_html(page)])
    console.out(str(target))
    return int(ExitCode.OK)


def _answers(reader: RecordingReader) -> Sequence[str]:
    """Return a sentence for each `--slo` of a search; none for other runs."""
    if reader.header.config.search is None:
        return ()
    result = search_result(reader, run_summary(reader))
    return [answer_line(result, tier) for tier in result.tiers]
