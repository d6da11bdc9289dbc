"""The commands for runs that go on; each imports what it needs when it runs."""

from __future__ import annotations

from typing import Annotated

import typer

from servetop.cli.framework.command_classes import PlainCommand
from servetop.cli.options import options as o

Run = Annotated[str, typer.Argument(metavar="RUN|latest", help="A run's id or its beginning, as servetop ps shows it.")]


def ps(as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False) -> int:
    """List the runs that go on: id, engine, age, state, recording."""
    from servetop.cli.viewing.live_runs import print_runs

    return print_runs(as_json=as_json)


def stop(
    run: Run,
    now: Annotated[bool, typer.Option("--now", help="Cancel the requests in flight.")] = False,
    timeout: Annotated[float, typer.Option("--timeout", min=0, help="Seconds to wait for the run's end.")] = 300.0,
) -> int:
    """Stop a run: let its requests finish, stop its engine, wait; exit code 1 when it still goes on."""
    from servetop.cli.viewing.live_runs import stop_run

    return stop_run(run, now=now, timeout=timeout)


def attach(run: Run = "latest", theme: o.ThemeName = "", reduced_motion: o.ReducedMotion = False) -> int:
    """Open the dashboard on a run that goes on; leaving it ends nothing."""
    from servetop.cli.viewing.display_options import DisplayOptions
    from servetop.cli.viewing.live_runs import attach_run

    return attach_run(run, DisplayOptions(theme=theme, reduced_motion=reduced_motion))


def add_run_commands(app: typer.Typer) -> None:
    """Make them commands of servetop."""
    for command in (ps, stop, attach):
        app.command(cls=PlainCommand)(command)
