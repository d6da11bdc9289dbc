"""Writes what the simulator saw of an audited client as a recording, to be set beside the client's own result."""

from __future__ import annotations

from pathlib import Path

from servetop.core.errors import UsageError
from servetop.recordings.library.paths import SUFFIX
from servetop.recordings.write.connection import check_new
from servetop.run.audit.audit_run import ObservedLoad
from servetop.run.imports.imported_result import ImportedLoad, ImportedResult
from servetop.run.imports.record_import import record_import

SERVER = "simulator"
"""The tool of such a recording: its requests are those that the server saw."""


def check_target(path: Path) -> None:
    """Raise UsageError for a file whose name is not that of a recording, RecordingError for one that exists."""
    if path.suffix != SUFFIX:
        raise UsageError(f"--record {path} is no recording by its suffix: give a name that ends in {SUFFIX}")
    check_new(path)


def record_observed(observed: ObservedLoad, path: Path) -> None:
    """Write the requests that the server saw, at least one, by its clock; RecordingError if that fails."""
    result = ImportedResult(
        tool=SERVER,
        requests=observed.requests,
        load=ImportedLoad(),
        backend=observed.spec.engine.name,
        model=observed.spec.model.name,
        origin_ns=observed.anchor.origin_ns,
        wall_epoch_s=observed.anchor.wall_epoch_s,
    )
    record_import(result, None, path)
