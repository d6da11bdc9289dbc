"""Plug-ins of other packages, found by their entry points: finding them imports none, a broken one hides no other."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from servetop.core.errors import PlugInError, UsageError
from servetop.core.text.sanitize import sanitize_line
from servetop.core.text.shorten import cut_short

T = TypeVar("T")
_LONGEST = 300
"""Characters of an error of a plug-in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlugIn:
    """One entry point of another package."""

    kind: str
    """The kind of plug-in for messages, as in `exporter`."""
    name: str
    location: str
    """`module:attribute`."""
    package: str
    """Name and version of the package, as in `servetop-nimble 1.0`; empty if unknown."""

    @property
    def where(self) -> str:
        """The beginning of a message about it."""
        of = f" of {self.package}" if self.package else ""
        return sanitize_line(f"{self.kind} {self.name!r}{of} ({self.location})")

    def load(self, wanted: type[T]) -> T:
        """Return the object; PlugInError if it cannot be imported, or is not an instance of `wanted`."""
        module, _, attribute = self.location.partition(":")
        loaded = self.call("import", lambda: _attribute(importlib.import_module(module), attribute))
        if not isinstance(loaded, wanted):
            raise PlugInError(
                f"{self.where} is {type(loaded).__name__}: it must be a {wanted.__name__} of servetop.api.plug_ins"
            )
        return loaded

    def call(self, what: str, function: Callable[..., T], *arguments: object) -> T:
        """Return what a function of the plug-in returns; PlugInError if it raises anything but a UsageError."""
        try:
            return function(*arguments)
        except KeyboardInterrupt:
            raise
        except UsageError as error:
            raise UsageError(_line(str(error))) from error
        except BaseException as error:  # a plug-in may raise anything, such as the panic of an extension in Rust
            raise PlugInError(
                f"{self.where}: {what} failed: {type(error).__name__}: {_line(_text(error))}".rstrip(": ")
            ) from error

    def each(self, what: str, values: Callable[[], Iterable[T]]) -> Iterator[T]:
        """Yield the values of an iterable of the plug-in; errors as `call`."""
        remaining = self.call(what, lambda: iter(values()))
        end = object()
        while (value := self.call(what, next, remaining, end)) is not end:
            yield value

    def refused(self, problem: str) -> PlugInError:
        """Return the error for a value that the plug-in may not return."""
        return PlugInError(f"{self.where}: {problem}")


def plug_ins(group: str, kind: str) -> Mapping[str, PlugIn]:
    """Return the entry points of a group by name, sorted; the first package that has a name keeps it.

    Reads the metadata of every installed package, which takes milliseconds for each: only for what needs plug-ins. A
    package whose metadata cannot be read is left out.
    """
    from importlib.metadata import distributions  # slow, and needed only for plug-ins

    found: dict[str, PlugIn] = {}
    for package in distributions():
        try:
            points = [each for each in package.entry_points if each.group == group]
            label = f"{package.metadata['Name']} {package.version}" if points else ""
        except Exception:  # damaged metadata of any kind
            continue
        for point in points:
            found.setdefault(point.name, PlugIn(kind=kind, name=point.name, location=point.value, package=label))
    return dict(sorted(found.items()))


def _attribute(value: Any, names: str) -> Any:
    for name in filter(None, names.split(".")):
        value = getattr(value, name)
    return value


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # its own `__str__` failed
        return ""


def _line(text: str) -> str:
    return cut_short(sanitize_line(text), _LONGEST)
