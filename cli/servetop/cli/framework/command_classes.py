"""Typer's command classes without slow imports: plain help grouped by panel, plain option values."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup

from servetop.cli.framework.plain_values import convert_without_pydantic

if TYPE_CHECKING:
    from typer._click import Command, Context, HelpFormatter

HELP_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 110}
"""Context settings of the commands; the width is in columns."""


class PlainCommand(TyperCommand):
    """A command whose options are listed by panel."""

    def format_options(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write the arguments, then one section of options for each panel."""
        write_sections(self, ctx, formatter)

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Convert the command line to values."""
        convert_without_pydantic(self.get_params(ctx))
        return super().parse_args(ctx, args)


class PlainGroup(TyperGroup):
    """A group of commands whose own options are listed by panel.

    Ctrl-C raises `typer.Abort`; Typer itself would exit silently.
    """

    def make_context(self, *arguments: Any, **settings: Any) -> Context:
        """Parse the command line."""
        with _interrupts_abort():
            return super().make_context(*arguments, **settings)

    def invoke(self, ctx: Context) -> Any:
        """Run the command."""
        with _interrupts_abort():
            return super().invoke(ctx)

    def format_options(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write the commands first, then one section of options for each panel."""
        self.format_commands(ctx, formatter)
        write_sections(self, ctx, formatter)

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Convert the command line to values."""
        convert_without_pydantic(self.get_params(ctx))
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write each command with its whole first sentence, which Typer would cut at the width of the terminal."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section(typer.style("Commands", bold=True)):
            formatter.write_dl([(name, each.get_short_help_str(1000)) for name, each in commands if each is not None])


@contextlib.contextmanager
def _interrupts_abort() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt as interrupt:
        raise typer.Abort from interrupt


def write_sections(command: Command, ctx: Context, formatter: HelpFormatter) -> None:
    """Write a command's parameters, grouped by `rich_help_panel` in the order in which they were declared."""
    sections: dict[str, list[tuple[str, str]]] = {}
    for parameter in command.get_params(ctx):
        record = parameter.get_help_record(ctx)
        if record is not None:
            usual = "Options"
            if parameter.param_type_name == "argument":
                usual, record = "Arguments", (record[0].partition(" <")[0], record[1])  # without the type, as in <str>
            sections.setdefault(getattr(parameter, "rich_help_panel", None) or usual, []).append(record)
    for name, records in sections.items():
        with formatter.section(typer.style(name, bold=True)):
            formatter.write_dl(records)
