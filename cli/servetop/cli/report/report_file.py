"""`servetop report`: writes a recording, or the comparison of two, as HTML or Markdown, or a recording as a picture."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

from servetop.cli.options.tool_options import STANDARD_OUTPUT, ReportOptions
from servetop.cli.report.report_markdown import recording_markdown
from servetop.core.errors import ExitCode, UsageError
from servetop.recordings.library.catalog import resolve
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.comparison.compare_recordings import compare_recordings
from servetop.reports.comparison.compare_watches import compare_watches, watches_compared
from servetop.reports.comparison.comparison_markdown import markdown_lines
from servetop.reports.comparison.watch_comparison_text import watch_markdown
from servetop.reports.export.whole_file import refuse_target, write_whole
from servetop.reports.page.comparison_html import comparison_html
from servetop.reports.page.comparison_page import comparison_page
from servetop.reports.page.png_picture import png_of, require_png
from servetop.reports.page.watches_page import watches_html, watches_page
from servetop.run import console
from servetop.run.search.result_page import recording_html, recording_picture

HTML, MARKDOWN, PICTURE, PNG = "html", "md", "svg", "png"
_SUFFIXES = {
    ".html": HTML, ".htm": HTML, ".md": MARKDOWN, ".markdown": MARKDOWN, ".svg": PICTURE, ".png": PNG, "": HTML,
}  # fmt: skip
"""Formats by the suffix of a file."""
_NAMES = {MARKDOWN: "Markdown", PICTURE: "picture", PNG: "picture"}
"""Formats of one recording that show no costs."""
_ZOOM = 2
"""Pixels of a PNG for each unit of the picture, so that its text is sharp on slides."""


def run_report(options: ReportOptions) -> int:
    """Write the report of a recording, or of two, and print where it is; OK, whatever its contents."""
    names = options.files or ("latest",)
    if len(names) > 2:
        raise UsageError(
            f"report compares two recordings, not {len(names)}: leave some out, or use servetop compare for more"
        )
    sources = [_source(name) for name in names]
    kind = _format(options, sources)
    if len(names) == 1 and options.anyway:
        raise UsageError("--anyway is for two recordings: name another one, or leave it out")
    if len(names) == 1 and kind in _NAMES and options.price:
        raise UsageError(
            f"--price has no effect on the {_NAMES[kind]} of one recording: leave it out, or give --format html"
        )
    if len(names) == 2 and kind in (PICTURE, PNG):
        raise UsageError("a picture shows one recording: name one, or give --format html")
    if kind == PNG:
        require_png()
    target = options.output or Path(f"{'-vs-'.join(each.stem for each in sources)}.{kind}")
    content = _recording_content(names[0], options, kind) if len(names) == 1 else _pair_text(options, kind)
    if target == STANDARD_OUTPUT and isinstance(content, str):
        console.out_data([content])
        return int(ExitCode.OK)
    write_whole(target, [content])
    console.out(str(target))
    return int(ExitCode.OK)


def _source(name: str) -> Path:
    """Return the file of one recording; UsageError for a name of several."""
    path = Path(name).expanduser()
    if path.is_dir() or ("," in name and not path.is_file()):
        raise UsageError(f"{name} names several recordings: name one, or use servetop compare --markdown")
    return resolve(name)


def _format(options: ReportOptions, sources: Sequence[Path]) -> str:
    """Return the format that is asked for, or that of the suffix; UsageError for a target that does not fit it."""
    target = options.output
    if target is None or target == STANDARD_OUTPUT:
        if target is not None and options.format == PNG:
            raise UsageError("a PNG is not text: add -o FILE")
        return options.format or HTML
    refuse_target(target, instead="the name of an HTML file, as in -o report.html", sources=sources)
    named = _SUFFIXES.get(target.suffix.lower())
    if options.format is None and named is None:
        raise UsageError(
            f"--output {target}: no format has the suffix {target.suffix}: use .html, .md, .svg or .png, or --format"
        )
    if options.format is not None and target.suffix and named not in (None, options.format):
        raise UsageError(f"--format {options.format} and --output {target} exclude each other: leave out --format")
    return options.format or named or HTML


def _recording_content(name: str, options: ReportOptions, kind: str) -> str | bytes:
    if kind == HTML:
        return recording_html(name, prices=options.price, on_trouble=console.message)
    if kind == PICTURE:
        return recording_picture(name)
    if kind == PNG:
        return png_of(recording_picture(name), zoom=_ZOOM)
    with contextlib.closing(RecordingReader.open(resolve(name))) as reader:
        return _lines_text(recording_markdown(reader, name=name))


def _pair_text(options: ReportOptions, kind: str) -> str:
    first, second = options.files
    if watches := watches_compared(options.files):
        return _watches_text(watches, options, kind)
    if kind == MARKDOWN:
        found = compare_recordings(options.files, prices=options.price, anyway=options.anyway)
        return _lines_text(markdown_lines(found))
    return comparison_html(comparison_page((first, second), prices=options.price, anyway=options.anyway))


def _watches_text(paths: Sequence[Path], options: ReportOptions, kind: str) -> str:
    if options.price or options.anyway:
        given = "--price" if options.price else "--anyway"
        raise UsageError(f"{given}: watches are shown side by side, without a load of their own: leave it out")
    if kind == MARKDOWN:
        return _lines_text(watch_markdown(compare_watches(paths)))
    return watches_html(watches_page(paths))


def _lines_text(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
