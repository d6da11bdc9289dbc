"""`servetop report`: writes a recording as one HTML file that works offline."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from servetop.cli.options.tool_options import ReportOptions
from servetop.core.errors import ExitCode, ServetopError, UsageError, system_reason
from servetop.recordings.library.catalog import resolve
from servetop.recordings.library.paths import SUFFIX
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
    if target.suffix == SUFFIX or target.is_dir():
        kind = "a folder" if target.is_dir() else f"a recording by its suffix {SUFFIX}"
        raise UsageError(f"--output {target} is {kind}: give the name of an HTML file, as in -o report.html")
    with contextlib.closing(RecordingReader.open(source)) as reader:
        page = report_page(reader, name=options.file, prices=options.price, answers=_answers(reader))
    write_whole(target, page_html(page))
    console.out(str(target))
    return int(ExitCode.OK)


def _answers(reader: RecordingReader) -> Sequence[str]:
    """Return a sentence for each `--slo` of a search; none for other runs."""
    if reader.header.config.search is None:
        return ()
    result = search_result(reader, run_summary(reader))
    return [answer_line(result, tier) for tier in result.tiers]


def write_whole(target: Path, text: str) -> None:
    """Write a file as a whole or not at all; ServetopError with the reason if that fails."""
    try:
        number, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:40]}.")
        try:
            with os.fdopen(number, "w", encoding="utf-8", errors="replace") as file:
                file.write(text)
            os.chmod(name, 0o666 & ~_umask())
            os.replace(name, target)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise
    except OSError as error:
        raise ServetopError(f"cannot write {target}: {system_reason(error)}: give another file with -o") from error


def _umask() -> int:
    """Return the permissions that new files of this process do not get."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
