"""`servetop export`: writes a recording in the format of another tool, to files or to standard output."""

from __future__ import annotations

import contextlib

from servetop.cli.options.tool_options import STANDARD_OUTPUT, ExportOptions
from servetop.core.errors import ExitCode, UsageError
from servetop.core.text.counted import counted
from servetop.recordings.library.catalog import resolve
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.export.export_formats import ExportedPart, ExportFormat, write_files
from servetop.reports.export.whole_file import refuse_target
from servetop.reports.plug_ins.exporters import export_format
from servetop.run import console


def run_export(options: ExportOptions) -> int:
    """Write a recording, and print where it is unless that is standard output; OK, whatever its contents."""
    form = export_format(options.format)
    _refuse_idle(options, form)
    target = None if options.output == STANDARD_OUTPUT else options.output
    if target is None and form.binary:
        raise UsageError(f"format {options.format} is not text: add -o FILE")
    source = resolve(options.file)
    if target is not None and not target.is_dir():
        refuse_target(
            target, instead=f"the name of a file or folder, as in -o {options.format}-results", sources=[source]
        )
    with contextlib.closing(RecordingReader.open(source)) as reader:
        part = ExportedPart(table=options.table or ExportedPart().table, stage=options.stage)
        files = form.files(reader, part)
        if target is not None:
            for path in write_files(files, target):
                console.out(str(path))
        elif len(files) > 1:
            raise UsageError(
                f"{reader.name} is {counted(len(files), 'file')} in format {options.format}: add -o FOLDER for all, or "
                "--stage NUMBER for one stage"
            )
        else:
            console.out_data(files[0].parts())  # a binary file has a target
        if form.not_carried:
            console.message(f"not in format {options.format}: {'; '.join(form.not_carried)}")
        if reader.damage is not None:
            console.message(reader.damage)
    return int(ExitCode.OK)


def _refuse_idle(options: ExportOptions, form: ExportFormat) -> None:
    """Raise UsageError for an option that the format does not use."""
    if options.table is not None and not form.by_table:
        raise UsageError(f"--table is for csv, jsonl and parquet: leave it out with --format {options.format}")
    if options.stage is not None and form.by_table:
        raise UsageError(f"--stage has no effect with --format {options.format}: its rows have the stage as a column")
    if options.stage is not None and not form.by_stage:
        raise UsageError(f"--stage has no effect with --format {options.format}: it has the whole run")
