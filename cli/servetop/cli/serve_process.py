"""`python -m servetop.cli.serve_process`: `servetop serve` as the engine of a run.

It imports no other command, which would take longer than the simulator takes to start.
"""

from __future__ import annotations

import sys

from servetop.cli.framework.click_commands import CommandSpec, DeclaredCommand
from servetop.cli.framework.command_line import CommandLine
from servetop.cli.main import main
from servetop.cli.options.serve_options import ServeOptions


def serve(line: CommandLine[ServeOptions]) -> int:
    """Run the simulator as a standalone OpenAI-compatible server."""
    from servetop.cli.configuration.server_settings import serve_simulator

    return serve_simulator(line.options)


if __name__ == "__main__":
    sys.exit(main(command=DeclaredCommand(CommandSpec(serve, ServeOptions, independent=True))))
