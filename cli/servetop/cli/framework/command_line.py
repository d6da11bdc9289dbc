"""What a command receives, and how declared options become Click's parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

import click

from servetop.cli.options.conversion import bounds_of, read_options
from servetop.cli.options.declaration import Argument, Completion, Declared, GivenValues, Option, declared

if TYPE_CHECKING:
    from servetop.run.process.first_sender import FirstSender

_Options = TypeVar("_Options")
_UNITS = {bool: None, int: "N", float: "NUMBER", str: "TEXT"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """What a command line holds besides options; commands receive it as `context.obj`."""

    engine_args: tuple[str, ...] = ()
    """The engine's own options, those after `--`."""
    sender: FirstSender | None = None
    """A sender process that is starting already, if this process is about to play a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLine(Generic[_Options]):
    """A parsed command line."""

    options: _Options
    given: GivenValues
    """The values on the command line itself, by option, without defaults."""
    invocation: Invocation


def command_line_of(
    context: click.Context, options: type[_Options], *, independent: bool = False
) -> CommandLine[_Options]:
    """The command line of a parsed context; UsageError for a value that does not fit its option or has no effect.

    With `independent` options, every one has its effect beside any other.
    """
    names = {each.name for each in declared(options)}
    given = {name: value for name, value in context.params.items() if name in names and value not in (None, ())}
    values = read_options(options, given)
    if not independent:
        from servetop.cli.configuration.idle_options import refuse_idle_options  # not for --help

        refuse_idle_options(given, values)
    return CommandLine(
        options=values,
        given=given,
        invocation=context.obj or Invocation(),  # None while a shell completes the line
    )


class _Option(click.Option):
    """An option in a panel of the help page."""

    def __init__(self, option: Declared, form: Option) -> None:
        complete = form.complete or (_choosing(form) if form.choices else None)
        super().__init__(
            [option.name, *form.names.split()],
            help=help_of(option),
            metavar=unit_of(option),
            is_flag=option.is_flag,
            multiple=option.repeat,
            default=None,
            type=None if option.is_flag else click.UNPROCESSED,
            shell_complete=complete and _completing(complete),
        )
        self.panel = form.panel
        self._added = form.added

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the names of the option and its help, with the values that plug-ins add."""
        record = super().get_help_record(ctx)
        added = () if record is None else self._added()
        return (record[0], f"{record[1]} Of plug-ins: {', '.join(added)}.") if record is not None and added else record


class _Argument(click.Argument):
    """An argument with a help text."""

    panel = "Arguments"

    def __init__(self, argument: Declared, form: Argument) -> None:
        super().__init__(
            [argument.name],
            metavar=form.metavar,
            nargs=-1 if argument.repeat else 1,
            required=argument.required,
            type=click.UNPROCESSED,
            shell_complete=form.complete and _completing(form.complete),
        )
        self._form = form

    def get_usage_pieces(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Its name, in braces if it is required, else in brackets."""
        name = f"{{{self._form.metavar}}}" if self.required else f"[{self._form.metavar}]"
        return [name if self.nargs == 1 else f"{name}..."]

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:  # noqa: ARG002
        """Its name and help."""
        return self._form.metavar, f"{self._form.help}  [required]" if self.required else self._form.help


def parameter(option: Declared) -> click.Parameter:
    """Return the parameter of a Click command, whose value is a text, a list or a flag; None if it is not given."""
    form = option.form
    return _Argument(option, form) if isinstance(form, Argument) else _Option(option, form)


def _completing(complete: Completion) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    return lambda _context, _parameter, incomplete: complete(incomplete)


def unit_of(option: Declared) -> str | None:
    """Return the unit or form of an option's value, as help shows it; None for a flag."""
    form = option.form
    assert isinstance(form, Option)
    return form.unit or ("|".join(form.choices) if form.choices else _UNITS.get(option.kind, "FILE"))


def help_of(option: Declared) -> str:
    """Return what an option does, its default and its bounds."""
    form = option.form
    assert isinstance(form, Option)
    usual = form.default or _shown_default(option)
    facts = [f"default: {usual}"] if usual else []
    if form.maximum is not None or (form.minimum or 0) not in (0, 1):
        facts.append(bounds_of(form).removeprefix("of "))
    return f"{form.help} ({'; '.join(facts)})" if facts else form.help


def _shown_default(option: Declared) -> str:
    default, form = option.default, option.form
    if option.is_flag:
        return form.flags[0] if default is True and isinstance(form, Option) else ""
    return f"{default:g}" if isinstance(default, float | int) else default if isinstance(default, str) else ""


def _choosing(form: Option) -> Callable[[str], list[str]]:
    def complete(incomplete: str) -> list[str]:
        return [choice for choice in (*form.choices, *form.added()) if choice.startswith(incomplete)]

    return complete
