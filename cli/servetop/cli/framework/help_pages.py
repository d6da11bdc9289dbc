"""The help pages: `--help` lists the common options of a command, `--help-all` all of them by panel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import click

from servetop.cli.framework.command_line import unit_of
from servetop.cli.options.declaration import Declared, Option, declared
from servetop.run import console

HELP_WIDTH = {"max_content_width": 110}
"""Context settings of the commands; in columns."""
MANY_OPTIONS = 15
"""A command with more options has a short page."""
_Page: TypeAlias = Callable[[click.Context], str]


def common_options(options: type[Any], *, refused: frozenset[str] = frozenset()) -> tuple[Declared, ...]:
    """Return the options for the short help page of a command, without `refused`; none if it has few options."""
    found = [each for each in declared(options) if isinstance(each.form, Option) and each.name not in refused]
    return tuple(each for each in found if _brief(each)) if len(found) > MANY_OPTIONS else ()


def _brief(option: Declared) -> str:
    return option.form.brief if isinstance(option.form, Option) else ""


def help_options(short: _Page | None) -> list[click.Option]:
    """`--help`, which prints the short page, and `--help-all`; they print the same if there is no short page."""
    if short is None:
        return [
            _help_option(["-h", "--help"], "Show this message and exit.", click.Context.get_help),
            _help_option(["--help-all"], "", click.Context.get_help, hidden=True),
        ]
    return [
        _help_option(["-h", "--help"], "Show the common options and exit.", short),
        _help_option(["--help-all"], "Show all options and exit.", click.Context.get_help),
    ]


def _help_option(names: list[str], text: str, page: _Page, *, hidden: bool = False) -> click.Option:
    def show(context: click.Context, _: click.Parameter, given: bool) -> None:
        if given and not context.resilient_parsing:
            console.page(page(context))
            context.exit()

    return click.Option(names, is_flag=True, is_eager=True, expose_value=False, help=text, callback=show, hidden=hidden)


def short_page(common: Sequence[Declared]) -> _Page:
    """Return a function that returns the page with these options."""

    def page(context: click.Context) -> str:
        formatter, command = context.make_formatter(), context.command
        command.format_usage(context, formatter)
        command.format_help_text(context, formatter)
        if isinstance(command, click.Group):
            with formatter.section(click.style("Commands", bold=True)):
                names = ", ".join(command.list_commands(context))
                formatter.write_text(f"{names} (see {context.command_path} COMMAND --help)")
        sections = _sections([each for each in command.params if isinstance(each, click.Argument)], context)
        for each in common:
            names = f"{each.spelling} {unit_of(each) or ''}".rstrip()
            sections.setdefault(_panel(each), []).append((names, _brief(each)))
        _write(sections, formatter)
        formatter.write_paragraph()
        total = sum(isinstance(each, click.Option) and not (each.is_eager or each.hidden) for each in command.params)
        formatter.write_text(f"--help-all shows all {total} options.")
        return formatter.getvalue()

    return page


def _panel(option: Declared) -> str:
    return option.form.panel if isinstance(option.form, Option) else "Arguments"


def write_sections(command: click.Command, context: click.Context, formatter: click.HelpFormatter) -> None:
    """Write a command's parameters, grouped by panel in the order in which they were declared."""
    _write(_sections(command.params, context), formatter)


def _sections(parameters: Sequence[click.Parameter], context: click.Context) -> dict[str, list[tuple[str, str]]]:
    sections: dict[str, list[tuple[str, str]]] = {}
    for each in parameters:
        record = each.get_help_record(context)
        if record is not None:
            sections.setdefault(getattr(each, "panel", "Options"), []).append(record)
    return sections


def _write(sections: Mapping[str, Sequence[tuple[str, str]]], formatter: click.HelpFormatter) -> None:
    for name, records in sections.items():
        with formatter.section(click.style(name, bold=True)):
            formatter.write_dl(records)
