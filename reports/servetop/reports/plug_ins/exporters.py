"""Exporters of other packages: formats of `servetop export` from the entry points `servetop.exporters`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from servetop.core.errors import UsageError
from servetop.core.system.plug_ins import PlugIn, plug_ins
from servetop.core.text.encodable import encodable
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.export.export_formats import FORMATS, ExportedFile, ExportedPart, ExportFormat
from servetop.reports.plug_ins.recording_view import RecordingView

GROUP = "servetop.exporters"
_SUFFIX = re.compile(r"[\w.-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Exporter:
    """A format that a plug-in adds to `servetop export`: one file for a recording."""

    suffix: str
    """End of the file's name, as in `.tsv`: letters, digits, `.`, `-` and `_`."""
    write: Callable[[RecordingView], Iterable[str] | Iterable[bytes]]
    """Returns the contents in parts, which are written as they come; UsageError if there is nothing to export."""
    binary: bool = False
    """Whether the parts are bytes, else text; what is not text needs `-o FILE`."""
    not_carried: Sequence[str] = ()
    """What the format has no place for: phrases of a message to the user."""


def export_format(name: str) -> ExportFormat:
    """Return the format of that name; UsageError if there is none, PlugInError for a plug-in that cannot be loaded."""
    if name in FORMATS:
        return FORMATS[name]
    added = plug_ins(GROUP, "exporter")
    if name not in added:
        raise UsageError(f"no format is called {name}: use {', '.join((*FORMATS, *added))}")
    plug_in = added[name]
    exporter = plug_in.load(Exporter)
    if not isinstance(exporter.suffix, str) or _SUFFIX.fullmatch(exporter.suffix) is None:
        raise plug_in.refused(f"suffix is {exporter.suffix!r}: use letters, digits, '.', '-' and '_'")

    def files(reader: RecordingReader, _: ExportedPart) -> Sequence[ExportedFile]:
        return [
            ExportedFile(
                name=f"{reader.name}{exporter.suffix}",
                parts=lambda: _parts(plug_in, exporter, RecordingView(reader)),
            )
        ]

    return ExportFormat(files=files, binary=bool(exporter.binary), not_carried=[str(each) for each in _lost(exporter)])


def _lost(exporter: Exporter) -> Sequence[object]:
    lost = exporter.not_carried
    return [lost] if isinstance(lost, str) else list(lost)


def _parts(plug_in: PlugIn, exporter: Exporter, recording: RecordingView) -> Iterator[str | bytes]:
    wanted = bytes if exporter.binary else str
    parts: Iterator[str | bytes] = plug_in.each("write", lambda: exporter.write(recording))
    for part in parts:
        if not isinstance(part, wanted):
            raise plug_in.refused(f"write yielded {type(part).__name__}: it must yield {wanted.__name__}")
        yield encodable(part) if isinstance(part, str) else part
