"""`servetop import`: results of other load generators as recordings."""

from __future__ import annotations

from pathlib import Path

from servetop.cli.options.tool_options import ImportOptions
from servetop.core.errors import ExitCode, UsageError
from servetop.core.text.counted import counted
from servetop.recordings.library.paths import SUFFIX
from servetop.run import console
from servetop.run.imports.record_import import import_path, record_import
from servetop.run.imports.result_file import read_results


def run_import(options: ImportOptions) -> int:
    """Write each run of each file as a recording and print where it is, and on stderr what it could not carry; OK."""
    target = options.output
    if target is not None:
        _refuse(target, several=len(options.files) > 1)
    for name in options.files:
        _import(Path(name).expanduser(), target, options.format)
    return int(ExitCode.OK)


def _import(source: Path, target: Path | None, form: str | None) -> None:
    results = read_results(source, form)
    if target is not None and len(results) > 1:
        raise UsageError(f"-o names one recording, and {source} has {counted(len(results), 'run')}: leave it out")
    for result in results:
        path = import_path(result) if target is None else target
        record_import(result, source, path)
        console.out(str(path))
    remarks = dict.fromkeys(each for result in results for each in result.remarks)
    for each in remarks:
        console.message(f"{source.name}: {each}")
    if lost := dict.fromkeys(each for result in results for each in result.not_carried):
        console.message(f"not carried: {'; '.join(lost)}")


def _refuse(target: Path, *, several: bool) -> None:
    """Raise UsageError for a target that exists, is no recording by its name, or is one of several."""
    if several:
        raise UsageError("-o names one recording, and several files become one each: leave it out, or give one file")
    if target.exists():
        raise UsageError(f"{target} already exists: remove it, or choose another file with -o")
    if target.suffix != SUFFIX:
        raise UsageError(f"-o {target} is no recording by its suffix: give a name that ends in {SUFFIX}")
