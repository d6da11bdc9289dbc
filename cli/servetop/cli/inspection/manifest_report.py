"""`servetop manifest`: everything that identifies a recorded run, for people and as JSON."""

from __future__ import annotations

import contextlib
import dataclasses
import shlex
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from servetop.analysis.manifest.manifest_entries import NOT_SET, launch_arguments, manifest_entries
from servetop.core.config import WorkloadConfig, to_data
from servetop.core.errors import ExitCode
from servetop.core.interfaces.run_source import RunHeader
from servetop.recordings.library.catalog import resolve
from servetop.recordings.read.reader import RecordingReader
from servetop.run import console

_SECTIONS = ("run", "engine", "gpu", "model", "workload", "client", "servetop", "host")
"""In the order of the output."""
_ALWAYS_SHOWN = {"dataset", "input_len", "output_len", "endpoint", "ignore_eos"}
_SIZES = ("replicas", "kv_blocks", "block_size", "max_num_seqs", "max_model_len")
"""Keys without a section, which are the engine's."""


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
    """Return the manifest as it is recorded, and as texts by dotted key, which `servetop compare` compares."""
    return {
        "start": _start(header),
        "config": to_data(header.config),
        "versions": header.versions,
        "host": header.host,
        "engine": None if header.engine is None else to_data(header.engine),
        "manifest": header.manifest,
        "keys": manifest_entries(header, launched=bool(launch_arguments(header))),
    }


def manifest_lines(header: RunHeader) -> list[str]:
    """Return a heading for each section, with its values in one column; what was not given is left out."""
    sections = {"run": dict(_run(header)), "engine": dict(_engine(header)), "model": dict(_model(header))}
    usual = _usual_workload(header.config.workload)
    for key, text in manifest_entries(header, launched=bool(launch_arguments(header))).items():
        section, _, name = key.partition(".")
        if text != NOT_SET and key not in usual and not key.startswith("engine.args."):
            place = "engine" if key in _SIZES else section
            sections.setdefault(place, {})[name or key] = text
    width = max(len(name) for values in sections.values() for name in values)
    return [line for name in _SECTIONS for line in _section(name, sections.get(name, {}), width)]


def _usual_workload(workload: WorkloadConfig) -> set[str]:
    """Return keys that need no line: settings of the workload that have their default, and the seed, which has one."""
    default = WorkloadConfig()
    names = {each.name for each in dataclasses.fields(workload)} - _ALWAYS_SHOWN
    return {f"workload.{name}" for name in names if getattr(workload, name) == getattr(default, name)} | {"seed"}


def _section(name: str, values: Mapping[str, str], width: int) -> list[str]:
    return [name, *(f"  {key:<{width}}  {text}" for key, text in values.items())] if values else []


def _run(header: RunHeader) -> Iterator[tuple[str, str]]:
    yield "start", _start(header)
    yield "seed", str(header.config.seed)
    if header.config.label:
        yield "label", header.config.label
    yield from ((f"metadata.{name}", text) for name, text in header.config.metadata.items())
    command_line = header.manifest.get("command_line")
    if isinstance(command_line, list):
        yield "command line", shlex.join(map(str, command_line))


def _engine(header: RunHeader) -> Iterator[tuple[str, str]]:
    arguments, given = launch_arguments(header), header.config.engine.extra_args
    if arguments:
        yield "command line", shlex.join(map(str, arguments))
    elif given:
        yield "given options", shlex.join(given)


def _model(header: RunHeader) -> Iterator[tuple[str, str]]:
    recorded = header.manifest.get("model")
    if isinstance(recorded, Mapping):
        yield from ((name, str(recorded[name])) for name in ("path", "revision") if name in recorded)


def _start(header: RunHeader) -> str:
    return datetime.fromtimestamp(header.anchor.wall_epoch_s, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
