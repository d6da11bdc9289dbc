"""A command line whose commands are made when they are asked for: Typer makes all of them to run one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

if TYPE_CHECKING:
    from typer._click import Command
    from typer.models import CommandInfo


def command_line(app: typer.Typer) -> TyperGroup:
    """The group of an app's commands, with the app's own options."""
    declared = app.registered_commands
    app.registered_commands = []
    try:
        group = typer.main.get_command(app)
    finally:
        app.registered_commands = declared
    assert isinstance(group, TyperGroup)
    group.commands = _Commands(declared, app)
    return group


class _Commands(dict[str, Any]):
    """Commands by name, in the order in which they were declared; None stands for one that nobody has asked for."""

    def __init__(self, declared: Sequence[CommandInfo], app: typer.Typer) -> None:
        self._app = app
        self._declared = {_name(info): info for info in declared}
        super().__init__(dict.fromkeys(self._declared))

    def __getitem__(self, name: str) -> Command:
        if super().__getitem__(name) is None:
            self[name] = typer.main.get_command_from_info(
                self._declared[name],
                pretty_exceptions_short=self._app.pretty_exceptions_short,
                rich_markup_mode=self._app.rich_markup_mode,
            )
        made: Command = super().__getitem__(name)
        return made

    def get(self, name: str, default: Any = None) -> Any:
        """Make it, if there is such a command."""
        if name not in self:
            return default
        return self[name]


def _name(info: CommandInfo) -> str:
    assert info.callback is not None
    return info.name or typer.main.get_command_name(info.callback.__name__)
