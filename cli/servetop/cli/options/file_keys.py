"""The keys of `--config` and sweep files: the names of the options of a run, with values as a command line has them.

A file is flat, `request_rate = 8`, or has the tables `[engine]`, `[workload]` and `[engine.connection]` of a
recording's header; both set the same options.
"""

from __future__ import annotations

import functools
import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from servetop.cli.options.declaration import Declared, Given, Option, declared
from servetop.cli.options.option_names import nearest, plain
from servetop.cli.options.run_options import RunOptions
from servetop.core.errors import UsageError

ENGINE_ARGS = "engine_args"
"""Key of the engine's own options, which a command line has after `--`."""
TABLES = ("engine", "workload", "connection")
KEYS_PAGE = "docs/how-to/sweep.md"
"""The page that lists all keys."""
_HEADER_NAMES = {
    "command": "engine_command",
    "dataset": "dataset_name",
    "extra_args": ENGINE_ARGS,
    "headers": "header",
    "more_urls": "url",
    "thresholds": "threshold",
    "prices": "price",
}
"""Keys of EngineConfig, WorkloadConfig and RunConfig that differ from the name of their option."""


@functools.cache
def file_options() -> dict[str, Declared]:
    """Return the options that a file may set, by field name."""
    return {each.name: each for each in declared(RunOptions) if isinstance(each.form, Option) and each.form.in_files}


@functools.cache
def _spellings() -> dict[str, str]:
    """Field names by every spelling of an option, with underscores."""
    return {
        plain(flag): each.name
        for each in file_options().values()
        if isinstance(each.form, Option)
        for flag in each.form.flags
    }


def is_file_key(option: str) -> bool:
    """Whether a file may set this option, in any of its spellings."""
    return plain(option) in _spellings()


def option_of_key(key: str, *, where: str, also: Sequence[str] = ()) -> str:
    """The field that a key sets, or ENGINE_ARGS; UsageError, with the nearest key or one of `also`, if unknown."""
    wanted = plain(key)
    wanted = _HEADER_NAMES.get(wanted, wanted)
    if wanted == ENGINE_ARGS or wanted in file_options():
        return wanted
    if wanted in _spellings():
        return _spellings()[wanted]
    near = nearest(key, [*sorted(_spellings()), ENGINE_ARGS, *also])
    hint = f"did you mean {near!r}?" if near else "keys are spelled like the options (servetop --help-all),"
    raise UsageError(f"{where}: unknown key {key!r}: {hint} see {KEYS_PAGE}")


def values_of_file(data: Mapping[str, Any], *, where: str) -> dict[str, Given]:
    """The values of parsed TOML by field, as a command line has them; UsageError for an unknown key or a wrong type."""
    values: dict[str, Given] = {}
    for key, value, place in _flat(data, where):
        name = option_of_key(key, where=place)
        given = _as_given(name, value, f"{place}.{key}")
        earlier = values.get(name)
        values[name] = [*earlier, *given] if isinstance(earlier, list) and isinstance(given, list) else given
    return values


def _as_given(name: str, value: Any, where: str) -> Given:
    """Return a TOML or JSON value as one of a command line."""
    if name == ENGINE_ARGS:
        return _texts(value, where)
    if name == "engine_command" and isinstance(value, list):
        return shlex.join(_texts(value, where))
    if name == "extra_body" and isinstance(value, Mapping):
        return json.dumps(value)
    if name == "model_mix" and isinstance(value, Mapping):
        return ",".join(f"{model}={weight}" for model, weight in value.items())
    option = file_options()[name]
    if option.is_flag or isinstance(value, bool):
        if option.is_flag and isinstance(value, bool):
            return value
        raise UsageError(f"{where} = {value!r}: use {'true or false' if option.is_flag else 'one value'}")
    if option.repeat:
        joint = ":" if name == "header" else "="
        return [f"{k}{joint}{v}" for k, v in value.items()] if isinstance(value, Mapping) else _texts(value, where)
    if isinstance(value, list | Mapping):
        raise UsageError(f"{where} = {value!r}: use one value")
    return str(value)


def _flat(data: Mapping[str, Any], where: str) -> Iterator[tuple[str, Any, str]]:
    """Keys, values and places, with the tables unfolded; `name` of `[engine]` is the option --engine."""
    for key, value in data.items():
        if plain(key) not in TABLES or not isinstance(value, Mapping):
            yield key, value, where
            continue
        for inner, found, place in _flat(value, f"{where}: {plain(key)}"):
            yield ("engine" if (plain(key), inner) == ("engine", "name") else inner), found, place


def _texts(value: Any, where: str) -> list[str]:
    each = value if isinstance(value, list | tuple) else [value]
    if any(isinstance(one, bool | list | Mapping) for one in each):
        raise UsageError(f"{where} = {value!r}: use a text, or a list of texts")
    return [str(one) for one in each]
