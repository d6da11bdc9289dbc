"""How an option is declared: as the annotation of a dataclass field, once.

    @options_class
    class LoadOptions:
        request_rate: Annotated[float | None, Option("--request-rate --rate", "Requests per second.")] = None

The command line, its help and completion, the keys of a `--config` or sweep file and docs/reference/options.md all
derive from the declaration. A field whose type is a dataclass is a group of options. Modules that declare options do
not postpone their annotations (`from __future__ import annotations`), so that no text is evaluated at start-up.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, dataclass_transform, get_args, get_origin

Given: TypeAlias = "str | Sequence[str] | bool"
"""The value of an option as a command line has it: a text, one text for each repetition, or a flag's state."""
GivenValues: TypeAlias = Mapping[str, Given]
"""Values by the name of the field that they set; only those that were given."""
Completion: TypeAlias = Callable[..., list[str]]
"""Returns the values that the shell offers for an incomplete one."""

_Class = TypeVar("_Class")
_KINDS = (bool, int, float, str, Path)


@dataclass_transform(kw_only_default=True, frozen_default=True)
def options_class(cls: type[_Class]) -> type[_Class]:
    """Make a dataclass of options: keyword-only, and immutable for type checkers.

    It has no comparison, `repr` or check of assignments: to generate these for every class would take a tenth of the
    time of `servetop --help`.
    """
    return dataclass(kw_only=True, eq=False, repr=False)(cls)


@dataclass(frozen=True, slots=True)
class Option:
    """An option of the command line and key of a file."""

    names: str
    """Spellings, separated by spaces; the first is the one in use. A flag with an off switch: `--a/--no-a`."""
    help: str
    """A sentence about the effect of the option, without its default and bounds."""
    panel: str = "Options"
    """Heading of the help page that it is listed under."""
    unit: str = ""
    """Unit or form of the value in upper case, as in SECONDS; empty: by its type."""
    default: str = ""
    """What happens without the option, where the default value does not show it."""
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    """The only values, if there are few."""
    of_plug_ins: str = ""
    """Entry-point group whose names are values too; read for help, completion, and a value not in `choices`."""
    repeat: bool = False
    """May be given several times; implied by a tuple without `parse`."""
    parse: Callable[[Any], object] | None = None
    """Converts a text (with `repeat`: all of them); UsageError for one that does not fit. None: by the field's type."""
    complete: Completion | None = None
    in_files: bool = True
    """Whether a file may set it."""
    brief: str = ""
    """A few words for `-h` of a command with many options; empty: `-h` leaves it out there."""

    def added(self) -> tuple[str, ...]:
        """Return the values that installed plug-ins add."""
        if not self.of_plug_ins:
            return ()
        from servetop.core.system.plug_ins import plug_ins  # not for every start

        return tuple(each for each in plug_ins(self.of_plug_ins, "") if each not in self.choices)

    @property
    def flags(self) -> tuple[str, ...]:
        """All spellings; of a flag, those that switch it on."""
        return tuple(name.partition("/")[0] for name in self.names.split())


@dataclass(frozen=True, slots=True)
class Argument:
    """A positional argument of a command."""

    metavar: str
    help: str = ""
    complete: Completion | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """An option or argument with the name, type and default of its field."""

    name: str
    """Of the field."""
    form: Option | Argument
    kind: type
    """bool, int, float, str or Path: the type of one value."""
    repeat: bool
    default: object
    """dataclasses.MISSING for an argument that has to be given."""

    @property
    def is_flag(self) -> bool:
        """It takes no value."""
        return self.kind is bool

    @property
    def required(self) -> bool:
        """It has no default."""
        return self.default is dataclasses.MISSING

    @property
    def spelling(self) -> str:
        """The name in messages, as in `--request-rate`."""
        return self.form.flags[0] if isinstance(self.form, Option) else self.form.metavar


def declared(options: type[Any]) -> tuple[Declared, ...]:
    """Return all options of a dataclass and of its groups, in order."""
    found: list[Declared] = []
    for field in dataclasses.fields(options):
        if isinstance(field.type, type) and dataclasses.is_dataclass(field.type):
            found += declared(field.type)
        else:
            found.append(_declared(field))
    return tuple(found)


def _declared(field: dataclasses.Field[Any]) -> Declared:
    annotation, form = get_args(field.type)
    if get_origin(annotation) is types.UnionType:
        annotation = next(each for each in get_args(annotation) if each is not type(None))
    repeat = form.repeat if isinstance(form, Option) else False
    if get_origin(annotation) is tuple and not (isinstance(form, Option) and form.parse):
        annotation, repeat = get_args(annotation)[0], True
    default = field.default
    if field.default_factory is not dataclasses.MISSING:
        default = field.default_factory()
    return Declared(
        name=field.name, form=form, kind=annotation if annotation in _KINDS else str, repeat=repeat, default=default
    )
