"""Writes what the keys of a dashboard save, to new files in the present directory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from servetop.reports.export.whole_file import write_whole


def save_picture(name: str, svg: str) -> Sequence[Path]:
    """Write a picture as SVG, and as PNG where that can be drawn; return their names. ServetopError if that fails."""
    from servetop.reports.page.png_picture import png_available, png_of

    written = [_write(f"{name}.svg", svg)]
    return [*written, _write(f"{written[0].stem}.png", png_of(svg))] if png_available() else written


def write_report(recording: Path) -> Path:
    """Write the report of a recording as HTML and return its name; ServetopError if that fails."""
    from servetop.run.search.result_page import recording_html

    return _write(f"{recording.stem}.html", recording_html(str(recording)))


def _write(name: str, content: str | bytes) -> Path:
    """Write to a file of this name, or with a number behind it if there is one already."""
    target, number = Path(name), 1
    while target.exists():
        number += 1
        target = Path(name).with_stem(f"{Path(name).stem}-{number}")
    write_whole(target, [content], instead="start servetop in a folder that can be written")
    return target
