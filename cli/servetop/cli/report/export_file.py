"""`servetop export`: writes a recording in the format of another tool, to files or to standard output."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

from servetop.cli.options.tool_options import ExportOptions
from servetop.cli.report.whole_file import refuse_target, write_whole
from servetop.core.errors import ExitCode, ServetopError, UsageError, system_reason
from servetop.core.text.counted import counted
from servetop.recordings.library.catalog import resolve
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.export.export_formats import ExportedFile, ExportedPart, ExportFormat
from servetop.reports.plug_ins.exporters import export_format
from servetop.run import console


def run_export(options: ExportOptions) -> int:
    """Write a recording, and print where it is unless that is standard output; OK, whatever its contents."""
    form = export_format(options.format)
    _refuse_idle(options, form)
    target = options.output
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
            _write(files, target)
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


def _write(files: Sequence[ExportedFile], target: Path) -> None:
    """Write one file to its name, or into an existing folder; several into a folder, which is made if necessary."""
    if len(files) > 1:
        try:
            target.mkdir(exist_ok=True)
        except OSError as error:
            raise ServetopError(f"cannot write to {target} ({system_reason(error)}): give a folder with -o") from error
    for each in files:
        path = target / each.name if target.is_dir() else target
        if "/" in each.name:
            path.parent.mkdir(exist_ok=True)
        write_whole(path, each.parts())
        console.out(str(path))
