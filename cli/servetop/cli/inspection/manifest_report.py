"""`servetop manifest`: everything that identifies a recorded run, for people and as JSON."""

from __future__ import annotations

import contextlib

from servetop.analysis.manifest.manifest_entries import launch_arguments, manifest_entries
from servetop.core.config import to_data
from servetop.core.errors import ExitCode
from servetop.core.interfaces.run_source import RunHeader
from servetop.recordings.library.catalog import resolve
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.summary.manifest_sections import manifest_lines, recorded_start
from servetop.run import console

_OF_WATCHES = ("engine", "thresholds", "label", "metadata", "watch")
"""Keys of the configuration of a watch; the others describe a load, which it does not have."""


def print_manifest(name: str, *, as_json: bool) -> int:
    """Print the manifest of a recording, which may be growing; RecordingError if its header cannot be read."""
    path = resolve(name)
    with contextlib.closing(RecordingReader.open(path)) as reader:
        header = reader.header
    if as_json:
        console.out_json({"recording": str(path), **manifest_data(header)}, default=str)
    else:
        console.out(*manifest_lines(header))
    return int(ExitCode.OK)


def manifest_data(header: RunHeader) -> dict[str, object]:
    """Return the manifest as it is recorded, and as texts by dotted key, which `servetop compare` compares.

    The configuration of a watch has no keys of a load, such as `workload` and `seed`.
    """
    config = to_data(header.config)
    if header.config.watch is not None:
        config = {name: config[name] for name in _OF_WATCHES}
    return {
        "start": recorded_start(header),
        "config": config,
        "versions": header.versions,
        "host": header.host,
        "engine": None if header.engine is None else to_data(header.engine),
        "manifest": header.manifest,
        "keys": manifest_entries(header, launched=bool(launch_arguments(header))),
    }
