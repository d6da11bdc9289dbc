"""What a command receives, and how a function of typed options becomes one of Typer's commands."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar

import typer

from servetop.cli.options.conversion import bounds_of, read_options
from servetop.cli.options.declaration import Argument, Declared, GivenValues, Option, declared

if TYPE_CHECKING:
    from typer._click import Context

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


def command_line_of(context: Context, options: type[_Options]) -> CommandLine[_Options]:
    """The command line of a parsed context; UsageError for a value that does not fit its option or has no effect."""
    from servetop.cli.configuration.idle_options import refuse_idle_options  # not for --help

    names = {each.name for each in declared(options)}
    given = {name: value for name, value in context.params.items() if name in names and value not in (None, ())}
    values = read_options(options, given)
    refuse_idle_options(given, values)
    return CommandLine(
        options=values,
        given=given,
        invocation=context.obj or Invocation(),  # None while a shell completes the line
    )


def typer_callback(function: Callable[[CommandLine[_Options]], int], options: type[_Options]) -> Callable[..., int]:
    """The function with the signature from which Typer makes parameters: every value a text, a list or a flag."""

    def callback(context: typer.Context, **_values: object) -> int:
        if context.invoked_subcommand is not None:
            return 0
        return function(command_line_of(context, options))

    context = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    callback.__signature__ = inspect.Signature([context, *map(_parameter, declared(options))])  # type: ignore[attr-defined]
    callback.__annotations__ = {}
    callback.__doc__ = function.__doc__
    return callback


def _parameter(option: Declared) -> inspect.Parameter:
    annotation: Any = bool if option.is_flag else list[str] if option.repeat else str
    return inspect.Parameter(
        option.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if option.required else None,
        annotation=Annotated[annotation if option.required else annotation | None, _typer_form(option)],
    )


def _typer_form(option: Declared) -> Any:
    form = option.form
    if isinstance(form, Argument):
        return typer.Argument(
            metavar=form.metavar, help=form.help or None, autocompletion=form.complete, show_default=False
        )
    return typer.Option(
        *form.names.split(),
        help=help_of(option),
        metavar=unit_of(option),
        show_default=False,
        rich_help_panel=form.panel,
        autocompletion=form.complete or (_choosing(form.choices) if form.choices else None),
    )


def unit_of(option: Declared) -> str | None:
    """The unit or form of an option's value, as help shows it; None for a flag."""
    form = option.form
    assert isinstance(form, Option)
    return form.unit or ("|".join(form.choices) if form.choices else _UNITS.get(option.kind, "FILE"))


def help_of(option: Declared) -> str:
    """What an option does, its default and its bounds."""
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


def _choosing(choices: tuple[str, ...]) -> Callable[[str], list[str]]:
    def complete(incomplete: str) -> list[str]:
        return [choice for choice in choices if choice.startswith(incomplete)]

    return complete
