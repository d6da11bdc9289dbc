"""`servetop export`: writes a recording in the format of another tool, to a file or to standard output."""

from __future__ import annotations

import contextlib

from servetop.cli.options.tool_options import ExportOptions
from servetop.cli.report.whole_file import refuse_target, write_whole
from servetop.core.errors import ExitCode
from servetop.recordings.library.catalog import resolve
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.export.export_formats import FORMATS
from servetop.run import console


def run_export(options: ExportOptions) -> int:
    """Write a recording, and print where it is if that is a file; OK, whatever its contents."""
    target = options.output
    if target is not None:
        refuse_target(target, instead=f"the name of a file, as in -o requests.{options.format}")
    with contextlib.closing(RecordingReader.open(resolve(options.file))) as reader:
        (file,) = FORMATS[options.format].files(reader, options.table or "requests")
        if target is None:
            console.out_data(file.parts)
        else:
            write_whole(target, file.parts)
            console.out(str(target))
        if reader.damage is not None:
            console.message(reader.damage)
    return int(ExitCode.OK)
