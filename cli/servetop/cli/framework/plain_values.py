"""Keeps Typer from importing Pydantic, which it would do to convert the values of any command line.

The one module that knows how Typer keeps conversions. Options are converted from text by `options.conversion`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class PlainValue:
    """Passes the values of one option on as they are; None stays None, or becomes an empty tuple for a list."""

    def __init__(self, *, repeat: bool) -> None:
        self._repeat = repeat

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:  # noqa: ARG002
        """Return the value of a parameter."""
        if value is None:
            return () if self._repeat else None
        return list(value) if self._repeat else value


def convert_without_pydantic(parameters: Iterable[Any]) -> None:
    """Give the parameters the light conversion; once per process and command."""
    for parameter in parameters:
        if getattr(parameter, "_runtime_param", True) is None:
            repeat = getattr(parameter, "multiple", False) or getattr(parameter, "nargs", 1) == -1
            parameter._runtime_param = PlainValue(repeat=repeat)
