"""The help pages: `--help` lists all options of a command by panel, `-h` the common ones of a command with many."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperOption

from servetop.cli.framework.command_line import unit_of
from servetop.cli.options.declaration import Declared, Option, declared
from servetop.run import console

if TYPE_CHECKING:
    from typer._click import Command, Context, HelpFormatter, Parameter

HELP_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 110}
"""Context settings of the commands; the width is in columns."""
MANY_OPTIONS = 15
"""A command with more options has a short page."""


class HelpPages:
    """Gives one of Typer's command classes, which follows in the bases, its help options."""

    common: tuple[Declared, ...] = ()
    """The options on the short page; empty: there is none, and `-h` is `--help`."""
    help_options: tuple[Parameter, ...] | None = None
    """`-h` and `--help`, as one option if both show the same; None until they are needed."""

    def get_params(self: Any, ctx: Context) -> list[Parameter]:
        """The parameters, with the help options last."""
        if self.help_options is None:
            usual = self.get_help_option(ctx)
            self.help_options = () if usual is None else _help_options(usual, short=bool(self.common))
        return [*self.params, *self.help_options]


def common_options(options: type[Any]) -> tuple[Declared, ...]:
    """The options on the short page of a command; none if it has few options."""
    found = [each for each in declared(options) if isinstance(each.form, Option)]
    return tuple(each for each in found if _brief(each)) if len(found) > MANY_OPTIONS else ()


def _brief(option: Declared) -> str:
    return option.form.brief if isinstance(option.form, Option) else ""


def _help_options(usual: Any, *, short: bool) -> tuple[Parameter, ...]:
    usual.callback = _print_page
    if not short:
        return (usual,)
    common = copy.copy(usual)
    common.opts, common.help, common.callback = ["-h"], "Show the common options and exit.", _print_short_page
    usual.opts, usual.help = ["--help"], "Show all options and exit."
    return common, usual


def _print_page(ctx: Context, _: Parameter, given: bool) -> None:
    if given and not ctx.resilient_parsing:
        console.page(ctx.get_help())
        ctx.exit()


def _print_short_page(ctx: Context, _: Parameter, given: bool) -> None:
    if given and not ctx.resilient_parsing:
        formatter = ctx.make_formatter()
        _write_short_page(ctx.command, ctx, formatter)
        console.page(formatter.getvalue())
        ctx.exit()


def _write_short_page(command: Any, ctx: Context, formatter: HelpFormatter) -> None:
    command.format_usage(ctx, formatter)
    command.format_help_text(ctx, formatter)
    if names := getattr(command, "commands", ()):
        with formatter.section(typer.style("Commands", bold=True)):
            formatter.write_text(f"{', '.join(names)} (see {ctx.command_path} COMMAND -h)")
    arguments = [_record(each, ctx) for each in command.params if each.param_type_name == "argument"]
    sections = {"Arguments": [each for each in arguments if each is not None]} if arguments else {}
    for each in command.common:
        names = f"{each.spelling} {unit_of(each) or ''}".rstrip()
        sections.setdefault(each.form.panel, []).append((names, _brief(each)))
    _write(sections, formatter)
    total = sum(isinstance(each, TyperOption) for each in command.params)
    formatter.write_paragraph()
    formatter.write_text(f"--help shows all {total} options.")


def write_sections(command: Command, ctx: Context, formatter: HelpFormatter) -> None:
    """Write a command's parameters, grouped by `rich_help_panel` in the order in which they were declared."""
    sections: dict[str, list[tuple[str, str]]] = {}
    for parameter in command.get_params(ctx):
        record = _record(parameter, ctx)
        if record is not None:
            usual = "Arguments" if parameter.param_type_name == "argument" else "Options"
            sections.setdefault(getattr(parameter, "rich_help_panel", None) or usual, []).append(record)
    _write(sections, formatter)


def _record(parameter: Parameter, ctx: Context) -> tuple[str, str] | None:
    record = parameter.get_help_record(ctx)
    if record is None or parameter.param_type_name != "argument":
        return record
    return record[0].partition(" <")[0], record[1]  # without the type, as in <str>


def _write(sections: Mapping[str, Sequence[tuple[str, str]]], formatter: HelpFormatter) -> None:
    for name, records in sections.items():
        with formatter.section(typer.style(name, bold=True)):
            formatter.write_dl(records)
