"""Converts option values without Pydantic, which Typer would import for every command line.

The one module that knows how Typer keeps conversions; what it does not know is left to Typer.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Union, get_args, get_origin

import typer

_CONVERTERS: dict[Any, Callable[[str], Any]] = {str: str, int: int, float: float, bool: bool, Path: Path}
"""By annotated type: text to value; a flag comes as a bool or None. Other types are left to Typer."""


class PlainValue:
    """Converts the values of one option, within the limits that it declares."""

    def __init__(self, parameter: Any, convert: Callable[[str], Any], *, many: bool) -> None:
        self._low = getattr(parameter, "min", None)
        self._high = getattr(parameter, "max", None)
        self._convert = convert
        self._many = many

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """Convert a value, or each of a list; None stays None, and becomes an empty tuple for a list.

        typer.BadParameter, which names the option, for a value that does not fit.
        """
        if value is None:
            return () if self._many else None
        try:
            return [self._checked(each) for each in value] if self._many else self._checked(value)
        except (ValueError, TypeError) as error:
            raise typer.BadParameter(f"{value} ({self._expected})", ctx=ctx, param=param) from error

    def _checked(self, value: Any) -> Any:
        converted = self._convert(value)
        too_low = self._low is not None and converted < self._low
        if too_low or (self._high is not None and converted > self._high):
            raise ValueError(value)
        return converted

    @property
    def _expected(self) -> str:
        kind = "a whole number" if self._convert is int else "a number"
        if self._low is None:
            return f"use {kind}"
        return f"use {kind} from {self._low} to {self._high}" if self._high else f"use {kind} of at least {self._low}"


def convert_without_pydantic(parameters: Iterable[Any]) -> None:
    """Give the parameters of plain types the light conversion; once per process and command."""
    for parameter in parameters:
        descriptor = getattr(parameter, "type_descriptor", None)
        if descriptor is None or getattr(parameter, "_runtime_param", True) is not None:
            continue
        annotation, many = _single(descriptor.annotation)
        if annotation in _CONVERTERS:
            parameter._runtime_param = PlainValue(parameter, _CONVERTERS[annotation], many=many)


def _single(annotation: Any) -> tuple[Any, bool]:
    """The type of one value of an annotation, and whether there may be several."""
    if get_origin(annotation) in (Union, types.UnionType):
        plain = [each for each in get_args(annotation) if each is not type(None)]
        return _single(plain[0]) if len(plain) == 1 else (annotation, False)
    if get_origin(annotation) is list:
        return get_args(annotation)[0], True
    return annotation, False
