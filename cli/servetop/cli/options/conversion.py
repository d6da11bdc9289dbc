"""Builds the options dataclass of a command from the values that were given, with one conversion for every source."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar, cast

from servetop.cli.options.declaration import Declared, Given, GivenValues, Option, declared
from servetop.core.errors import UsageError
from servetop.core.units import SWEEP_HINT

_Options = TypeVar("_Options")
_SWEPT = frozenset({"max_num_seqs", "max_concurrency"})
"""Options of one number that a sweep file takes a list of."""


def read_options(options: type[_Options], given: GivenValues, *, where: str = "") -> _Options:
    """Return the options with their defaults where nothing was given.

    UsageError for a value that does not fit, introduced by `where`, the file that it comes from.
    """
    try:
        values = {each.name: convert(each, given[each.name]) for each in declared(options) if each.name in given}
    except UsageError as error:
        raise UsageError(f"{where}: {error}" if where else str(error)) from None
    return _built(options, values)


def convert(option: Declared, value: Given) -> object:
    """Return the value of one option; UsageError for one that does not fit."""
    form = option.form
    if isinstance(form, Option) and form.parse is not None:
        try:
            return form.parse(value)
        except UsageError as error:
            named = option.spelling in str(error)
            raise UsageError(str(error) if named else f"{option.spelling}: {error}") from None
    if option.repeat:
        texts = [value] if isinstance(value, str) else value
        assert isinstance(texts, Sequence)
        return tuple(_single(option, text) for text in texts)
    return value if option.is_flag else _single(option, str(value))


def _single(option: Declared, text: str) -> Any:
    try:
        value = option.kind(text)
        if not isinstance(option.form, Option) or _fits(option.form, value):
            return value
    except ValueError:
        pass
    several = f"; {SWEEP_HINT}" if "," in text and option.name in _SWEPT else ""
    raise UsageError(f"invalid {option.spelling} {text}: use {_expected(option)}{several}")


def _fits(form: Option, value: Any) -> bool:
    if form.choices:  # an empty value stands for the default, as in the configuration
        return value in (*form.choices, "") or value in form.added()
    return (form.minimum is None or value >= form.minimum) and (form.maximum is None or value <= form.maximum)


def _expected(option: Declared) -> str:
    form = option.form
    assert isinstance(form, Option)
    if form.choices:
        expected = listed((*form.choices, *form.added()))
    else:
        expected = "a whole number" if option.kind is int else "a number"
        bounds = bounds_of(form)
        expected += f" {bounds}" if bounds else ""
    return f"{expected}; without it: {form.default}" if form.default else expected


def bounds_of(form: Option) -> str:
    """Return the range of an option as text; empty without one."""
    if form.minimum is None:
        return ""
    return f"from {form.minimum:g} to {form.maximum:g}" if form.maximum is not None else f"of at least {form.minimum:g}"


def listed(choices: Iterable[str]) -> str:
    """Choices as a list in a sentence, as in `a, b or c`."""
    *first, last = choices
    return f"{', '.join(first)} or {last}" if first else last


def _built(options: type[_Options], values: dict[str, object]) -> _Options:
    arguments: dict[str, Any] = {}
    for field in dataclasses.fields(cast(Any, options)):
        if isinstance(field.type, type) and dataclasses.is_dataclass(field.type):
            arguments[field.name] = _built(field.type, values)
        elif field.name in values:
            arguments[field.name] = values[field.name]
    return options(**arguments)
