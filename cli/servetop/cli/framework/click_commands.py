"""Commands made of a function and the dataclass that declares its options, each when it is needed."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import click

from servetop.cli.framework.command_line import CommandLine, command_line_of, parameter
from servetop.cli.framework.completion import completion_options
from servetop.cli.framework.help_pages import common_options, help_options, short_page, write_sections
from servetop.cli.options.declaration import Declared, declared

_Options = TypeVar("_Options")


@dataclass(frozen=True, slots=True)
class CommandSpec(Generic[_Options]):
    """A command: its function, whose docstring is its help, and the dataclass that declares its options."""

    function: Callable[[CommandLine[_Options]], int]
    options: type[_Options]
    independent: bool = False
    """Whether every option has its effect beside any other."""
    refused: frozenset[str] = frozenset()
    """Names of options that the function refuses with a message of its own; no help page and no completion has them."""

    @property
    def name(self) -> str:
        """The name of the function, with hyphens, without the underscore after a keyword of Python."""
        return self.function.__name__.rstrip("_").replace("_", "-")

    def click_settings(self) -> dict[str, Any]:
        """Return the arguments of a Click command without help options, whose values are all texts, lists or flags."""
        return {
            "name": self.name,
            "help": self.function.__doc__,
            "params": [self._parameter(each) for each in declared(self.options)],
            "callback": click.pass_context(self._call),
            "add_help_option": False,
        }

    def _parameter(self, option: Declared) -> click.Parameter:
        found = parameter(option)
        if isinstance(found, click.Option):
            found.hidden = option.name in self.refused
        return found

    def _call(self, context: click.Context, /, **_values: object) -> int:
        if context.invoked_subcommand:
            return 0
        return self.function(command_line_of(context, self.options, independent=self.independent))


class DeclaredCommand(click.Command):
    """A command whose help page lists its options by panel."""

    def __init__(self, spec: CommandSpec[Any], **settings: Any) -> None:
        super().__init__(**spec.click_settings(), **settings)
        common = common_options(spec.options, refused=spec.refused)
        self.params += help_options(short_page(common) if common else None)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the help page."""
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        write_sections(self, ctx, formatter)


class CommandGroup(click.Group):
    """The command of a spec, with further commands, which are made when they are needed."""

    def __init__(self, spec: CommandSpec[Any], commands: Sequence[CommandSpec[Any]], **settings: Any) -> None:
        super().__init__(**{**spec.click_settings(), **settings}, invoke_without_command=True)
        self.params += [*completion_options(), *help_options(short_page(common_options(spec.options)))]
        self._specs = {each.name: each for each in commands}

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names of the commands, as declared."""
        return list(self._specs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Make the command, if there is one of that name."""
        if cmd_name not in self.commands and cmd_name in self._specs:
            self.commands[cmd_name] = DeclaredCommand(self._specs[cmd_name])
        return self.commands.get(cmd_name)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[Any, Any, list[str]]:
        """The command that the first of the words names; click.UsageError with the nearest names if there is none."""
        if args[0] not in self._specs and not ctx.resilient_parsing:
            near = ", ".join(map(repr, difflib.get_close_matches(args[0], self._specs)))
            ctx.fail(f"No such command {args[0]!r}." + (f" Did you mean {near}?" if near else ""))
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the help page: the commands first, each with its whole first sentence."""
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section(click.style("Commands", bold=True)):
            formatter.write_dl([(name, each.get_short_help_str(1000)) for name, each in commands if each is not None])
        write_sections(self, ctx, formatter)
        self.format_epilog(ctx, formatter)
