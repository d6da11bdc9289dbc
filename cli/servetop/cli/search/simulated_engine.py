"""From the configuration of an engine that servetop starts to what the simulator predicts of it."""

from __future__ import annotations

import click

from servetop.cli.configuration.server_settings import server_settings
from servetop.cli.framework.click_commands import CommandSpec, DeclaredCommand
from servetop.cli.framework.command_line import CommandLine, command_line_of
from servetop.cli.options.serve_options import ServeOptions
from servetop.core.config import EngineConfig
from servetop.core.errors import UsageError
from servetop.core.system.own_python import python_argv
from servetop.simulator.adapter import SERVER, SimEngine
from servetop.simulator.dialects.registry import server_dialect_class
from servetop.simulator.predict.predict import SimulatedEngine


def simulated_engine(config: EngineConfig) -> SimulatedEngine | None:
    """Return the engine that the command line of a simulator describes; None for another engine, or a wrong flag.

    A wrong flag is an error of the engine when it starts.
    """
    if config.name != SimEngine.name or config.url is not None or config.command:
        return None
    program = python_argv("-m", SERVER)
    try:
        words = SimEngine().launch(config, port=0).argv[len(program) :]
        context = _serve_command().make_context("serve", list(words))
        settings = server_settings(command_line_of(context, ServeOptions, independent=True).options)
    except (UsageError, click.ClickException):
        return None
    return SimulatedEngine(
        model=settings.model,
        gpu=settings.gpu,
        engine_profile=settings.engine_profile or server_dialect_class(settings.dialect).profile,
        settings=settings.simulation,
    )


def _serve_command() -> click.Command:
    def serve(_: CommandLine[ServeOptions]) -> int:
        """Parse only."""
        raise AssertionError("the options of a server are read, and nothing is served")

    return DeclaredCommand(CommandSpec(serve, ServeOptions, independent=True))
