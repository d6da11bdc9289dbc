"""The manifest of a recorded run as sections of names and values."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from servetop.analysis.manifest.manifest_entries import NOT_SET, launch_arguments, manifest_entries
from servetop.core.config import WorkloadConfig
from servetop.core.interfaces.run_source import RunHeader

_SECTIONS = ("run", "engine", "gpu", "model", "workload", "client", "servetop", "host")
"""In the order of the output."""
_ALWAYS_SHOWN = {"dataset", "input_len", "output_len", "endpoint", "ignore_eos"}
_SIZES = ("replicas", "kv_blocks", "block_size", "max_num_seqs", "max_model_len")
"""Keys without a section, which are the engine's."""


def manifest_lines(header: RunHeader) -> list[str]:
    """Return a heading for each section, with its values in one column; what was not given is left out."""
    sections = manifest_sections(header)
    width = max(len(name) for values in sections.values() for name in values)
    return [line for name, values in sections.items() for line in _section(name, values, width)]


def manifest_sections(header: RunHeader) -> dict[str, dict[str, str]]:
    """Return the names and values of each section that has any; what was not given is left out."""
    sections = {"run": dict(_run(header)), "engine": dict(_engine(header)), "model": dict(_model(header))}
    usual = _usual_workload(header.config.workload)
    for key, text in manifest_entries(header, launched=bool(launch_arguments(header))).items():
        section, _, name = key.partition(".")
        if text != NOT_SET and key not in usual and not key.startswith("engine.args."):
            place = "engine" if key in _SIZES else section
            sections.setdefault(place, {})[name or key] = text
    return {name: sections[name] for name in _SECTIONS if sections.get(name)}


def _usual_workload(workload: WorkloadConfig) -> set[str]:
    """Return keys that need no line: settings of the workload that have their default, and the seed, which has one."""
    default = WorkloadConfig()
    names = {each.name for each in dataclasses.fields(workload)} - _ALWAYS_SHOWN
    return {f"workload.{name}" for name in names if getattr(workload, name) == getattr(default, name)} | {"seed"}


def _section(name: str, values: Mapping[str, str], width: int) -> list[str]:
    return [name, *(f"  {key:<{width}}  {text}" for key, text in values.items())]


def _run(header: RunHeader) -> Iterator[tuple[str, str]]:
    yield "start", recorded_start(header)
    if header.imported is None and header.config.watch is None:
        yield "seed", str(header.config.seed)
    if header.imported is not None:
        yield "imported from", header.imported
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


def recorded_start(header: RunHeader) -> str:
    """Return when the run started, in UTC."""
    return datetime.fromtimestamp(header.anchor.wall_epoch_s, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
