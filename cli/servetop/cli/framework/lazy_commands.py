"""A command line whose commands are made when they are needed: Typer makes all of them to run one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import typer

from servetop.cli.framework.command_classes import PlainCommand, PlainGroup
from servetop.cli.framework.command_line import CommandLine, typer_callback
from servetop.cli.framework.help_pages import common_options

if TYPE_CHECKING:
    from typer._click import Command

_Options = TypeVar("_Options")


@dataclass(frozen=True, slots=True)
class CommandSpec(Generic[_Options]):
    """A command: its function, whose docstring is its help, and the dataclass that declares its options."""

    function: Callable[[CommandLine[_Options]], int]
    options: type[_Options]
    cls: type[PlainCommand] = PlainCommand
    context_settings: dict[str, Any] | None = None

    @property
    def name(self) -> str:
        """The name of the function, with hyphens."""
        return self.function.__name__.replace("_", "-")


def lazy_group(app: typer.Typer, commands: Sequence[CommandSpec[Any]]) -> PlainGroup:
    """The group of an app that has a callback and no commands, with these commands."""
    group = typer.main.get_command(app)
    assert isinstance(group, PlainGroup)
    group.commands = _Commands(commands)
    return group


class _Commands(dict[str, Any]):
    """Commands by name, in the order in which they were declared; None stands for one that is not made yet."""

    def __init__(self, commands: Sequence[CommandSpec[Any]]) -> None:
        self._specs = {each.name: each for each in commands}
        super().__init__(dict.fromkeys(self._specs))

    def __getitem__(self, name: str) -> Command:
        if super().__getitem__(name) is None:
            self[name] = _command(self._specs[name])
        made: Command = super().__getitem__(name)
        return made

    def get(self, name: str, default: Any = None) -> Any:
        """Make the command, if there is one of that name."""
        if name not in self:
            return default
        return self[name]


def _command(spec: CommandSpec[Any]) -> Command:
    app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command(spec.name, cls=spec.cls, context_settings=spec.context_settings)(
        typer_callback(spec.function, spec.options)
    )
    command = typer.main.get_command_from_info(
        app.registered_commands[0], pretty_exceptions_short=True, rich_markup_mode=None
    )
    assert isinstance(command, PlainCommand)
    command.common = common_options(spec.options)
    return command
