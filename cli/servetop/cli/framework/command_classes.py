"""Typer's command classes without slow imports: plain help grouped by panel, plain option values."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup

from servetop.cli.framework.help_pages import HelpPages, write_sections
from servetop.cli.framework.plain_values import convert_without_pydantic

if TYPE_CHECKING:
    from typer._click import Context, HelpFormatter


class PlainCommand(HelpPages, TyperCommand):
    """A command whose options are listed by panel."""

    def format_options(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write the arguments, then one section of options for each panel."""
        write_sections(self, ctx, formatter)

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Convert the command line to values."""
        convert_without_pydantic(self.get_params(ctx))
        return super().parse_args(ctx, args)


class PlainGroup(HelpPages, TyperGroup):
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
