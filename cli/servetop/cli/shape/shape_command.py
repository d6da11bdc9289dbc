"""`servetop shape`: logs of gateways and servers become a trace without their texts, and a report of it."""

from __future__ import annotations

import contextlib
import os
import secrets
import shlex
from pathlib import Path

from servetop.analysis.summary.summary_json import plain_object
from servetop.cli.options.shape_options import ShapeOptions
from servetop.cli.shape.shape_text import report_lines
from servetop.core.errors import ExitCode, UsageError, system_reason
from servetop.reports.export.whole_file import refuse_target, write_whole
from servetop.reports.schema.shape_schema import VERSION
from servetop.run import console
from servetop.workload.shape.field_map import parse_fields
from servetop.workload.shape.recorded_load import ShapeSettings, read_load
from servetop.workload.shape.shape_file import shape_lines
from servetop.workload.shape.shape_report import shape_report
from servetop.workload.token_estimate import CHARACTERS_PER_TOKEN

_SALT_BYTES = 32
_LEAST_SALT_BYTES = 16


def run_shape(options: ShapeOptions) -> int:
    """Write the trace, and print its report; OK, also if some lines cannot be read.

    UsageError if a source cannot be read, or if none has a request with a length.
    """
    if options.sources.count("-") > 1:
        raise UsageError("- is given more than once: standard input can be read once")
    target = options.output
    if target is not None:
        read = [Path(each).expanduser() for each in (*options.sources, options.salt_file) if each is not None]
        refuse_target(target, instead="the name of a file, as in -o shape.jsonl", sources=read)
    kept_salt = options.salt_file is not None
    fixed = float(CHARACTERS_PER_TOKEN) if kept_salt else None
    settings = ShapeSettings(
        fields=parse_fields(options.fields),
        format=options.format,
        salt=_salt(options.salt_file),
        block_tokens=options.block_tokens,
        characters_per_token=options.characters_per_token or fixed,
        input_len=options.input_len,
        output_len=options.output_len,
    )
    load = read_load(options.sources, settings)
    report = shape_report(load, output_len=options.output_len)
    if target is not None:
        write_whole(target, shape_lines(load, renumber=not kept_salt))
    replay = None if target is None else f"servetop --dataset-name trace --dataset-path {shlex.quote(str(target))}"
    if options.as_json:
        console.out_json({"schema_version": VERSION, **plain_object(report), "replay": replay})
    else:
        console.out(*report_lines(report, replay))
    return int(ExitCode.OK)


def _salt(path: Path | None) -> bytes:
    """Return the key of the hashes; a file that does not exist is made, readable only by its owner."""
    if path is None:
        return secrets.token_bytes(_SALT_BYTES)
    place = path.expanduser()
    try:
        with contextlib.suppress(FileExistsError):
            number = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(number, "wb") as file:
                file.write(secrets.token_bytes(_SALT_BYTES))
        salt = place.read_bytes()
    except OSError as error:
        raise UsageError(f"--salt-file: cannot use it ({system_reason(error)}): give another file") from None
    if len(salt) < _LEAST_SALT_BYTES:
        raise UsageError(
            f"--salt-file: its {len(salt)} bytes are too few to be secret: give {_LEAST_SALT_BYTES} random bytes or "
            "more, or the name of a new file"
        )
    return salt
