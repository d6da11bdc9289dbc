"""The commands that read recordings and print; each imports what it needs when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from servetop.cli.options import arguments as a
from servetop.cli.options import options as o


def summary(
    file: a.RecordingName = "latest",
    metric_percentiles: o.MetricPercentiles = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> int:
    """Print the summary of a recording."""
    from servetop.cli.configuration.configure import parse_percentiles
    from servetop.cli.report.report import print_recording

    percentiles = None if metric_percentiles is None else parse_percentiles(metric_percentiles)
    return print_recording(file, as_json=as_json, percentiles=percentiles)


def verify(
    files: a.RecordingNames,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> int:
    """Say what of a recording is sound and what is not; exit code 1: something is not; 2: it is no recording."""
    from servetop.cli.report.verify_report import run_verify

    return run_verify(files, as_json=as_json)


def ls(
    folder: Annotated[Path | None, typer.Argument(help="Folder. (default: the recordings folder)")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> int:
    """List the recordings, newest first."""
    from servetop.cli.report.report import print_recordings

    return print_recordings(folder, as_json=as_json)
