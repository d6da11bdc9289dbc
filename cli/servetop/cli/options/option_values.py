"""Option values from a file: the names, conversions and errors of the command line.

A file is flat, `request_rate = 8`, or has the tables `[engine]`, `[workload]` and `[engine.connection]` of a
recording's header; both give the same options.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import typer
from typer.exceptions import TyperException

from servetop.cli.options.option_names import nearest, plain
from servetop.core.errors import UsageError

ENGINE_ARGS = "engine_args"
"""Key of what stands after `--` on a command line."""
NOT_IN_FILES = ("config", "help", "version", "install_completion", "show_completion")
TABLES = ("engine", "workload", "connection")
_OLD_NAMES = {
    "command": "engine_command", "dataset": "dataset_name", "extra_args": ENGINE_ARGS, "headers": "header",
    "more_urls": "url", "thresholds": "threshold",
}  # fmt: skip
"""Keys of EngineConfig, WorkloadConfig and RunConfig that no option is spelled like."""


class RunOptions:
    """The options of `servetop` without a command, by all their spellings."""

    def __init__(self) -> None:
        from servetop.cli.commands import app  # imports this module's users when it runs

        self._command = typer.main.get_command(app)
        self._by_name = {each.name: each for each in self._command.params if each.name not in NOT_IN_FILES}
        spelled = {plain(word): name for name, each in self._by_name.items() for word in each.opts}
        self._names: dict[str, str] = {name: name for name in self._by_name} | spelled
        self.spellings = sorted(spelled)
        """Every long name, with underscores."""

    def name(self, key: str, *, where: str, also: Sequence[str] = ()) -> str:
        """The parameter that a key of a file means; UsageError with the nearest one, or of `also`, for another key."""
        wanted = plain(key)
        wanted = _OLD_NAMES.get(wanted, wanted)
        if wanted == ENGINE_ARGS:
            return ENGINE_ARGS
        if wanted in self._names:
            return self._names[wanted]
        near = nearest(key, [*self.spellings, ENGINE_ARGS, *also])
        hint = f"did you mean {near!r}?" if near else "keys are spelled as the options are (servetop --help)"
        raise UsageError(f"{where}: unknown key {key!r}: {hint}")

    def values(self, data: Mapping[str, Any], *, where: str) -> dict[str, Any]:
        """By parameter, what the options would be given on a command line; UsageError for what is none."""
        values: dict[str, Any] = {}
        for key, value, place in _flat(data, where):
            name = self.name(key, where=place)
            typed = self._as_typed(name, value, f"{place}.{key}")
            values[name] = [*values[name], *typed] if name in values and isinstance(typed, list) else typed
        return values

    def parsed(self, values: Mapping[str, Any], *, where: str) -> dict[str, Any]:
        """All options, converted as from a command line that gave `values` alone; UsageError for one that is wrong."""
        given = {name: value for name, value in values.items() if name in self._by_name}
        try:
            return dict(self._command.make_context("servetop", [], default_map=given).params)
        except TyperException as error:
            raise UsageError(f"{where}: {error.format_message()}") from None

    def _as_typed(self, name: str, value: Any, where: str) -> Any:
        """A TOML or JSON value as words of a command line; a flag stays true or false."""
        if name == ENGINE_ARGS:
            return _words(value, where)
        if name == "engine_command" and isinstance(value, list):
            return shlex.join(_words(value, where))
        if name == "extra_body" and isinstance(value, Mapping):
            return json.dumps(value)
        if name == "model_mix" and isinstance(value, Mapping):
            return ",".join(f"{model}={weight}" for model, weight in value.items())
        parameter = self._by_name[name]
        if getattr(parameter, "is_flag", False) or isinstance(value, bool):
            if not (isinstance(value, bool) and getattr(parameter, "is_flag", False)):
                raise UsageError(f"{where} = {value!r}: {_wanted(parameter)}")
            return value
        if getattr(parameter, "multiple", False):
            joint = ":" if name == "header" else "="
            return [f"{k}{joint}{v}" for k, v in value.items()] if isinstance(value, Mapping) else _words(value, where)
        if isinstance(value, list | Mapping):
            raise UsageError(f"{where} = {value!r}: {_wanted(parameter)}")
        return str(value)


def _flat(data: Mapping[str, Any], where: str) -> Iterator[tuple[str, Any, str]]:
    """Keys, values and places, with the tables unfolded; `name` of `[engine]` is the option --engine."""
    for key, value in data.items():
        if plain(key) not in TABLES or not isinstance(value, Mapping):
            yield key, value, where
            continue
        for inner, found, place in _flat(value, f"{where}: {plain(key)}"):
            yield ("engine" if (plain(key), inner) == ("engine", "name") else inner), found, place


def _words(value: Any, where: str) -> list[str]:
    each = value if isinstance(value, list | tuple) else [value]
    if any(isinstance(one, bool | list | Mapping) for one in each):
        raise UsageError(f"{where} = {value!r}: give a text, or a list of texts")
    return [str(one) for one in each]


def _wanted(parameter: Any) -> str:
    return "give true or false" if getattr(parameter, "is_flag", False) else "give one value"
