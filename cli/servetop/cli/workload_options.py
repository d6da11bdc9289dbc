"""The options that say what is asked and when, besides the common ones of `options`."""

from __future__ import annotations

from typing import Annotated

import typer

from servetop.cli.options import LOAD

Arrivals = Annotated[
    str | None,
    typer.Option(
        "--arrivals",
        help="gamma, poisson, constant, burst, spaced, sinusoid:period=60,amplitude=0.5, diurnal, trace, all-at-once.",
        rich_help_panel=LOAD,
    ),
]
ThinkTime = Annotated[
    str | None,
    typer.Option(
        "--think-time", help="Pause of each closed-loop user: 2, 500ms, exponential:mean=2.", rich_help_panel=LOAD
    ),
]
RampUpStrategy = Annotated[
    str | None,
    typer.Option("--ramp-up-strategy", help="linear or exponential, over the stage.", rich_help_panel=LOAD),
]
RampUpStart = Annotated[
    str | None,
    typer.Option("--ramp-up-start-rps", help="Requests per second at the beginning.", rich_help_panel=LOAD),
]
RampUpEnd = Annotated[
    str | None,
    typer.Option("--ramp-up-end-rps", help="Requests per second at the end.", rich_help_panel=LOAD),
]
NumWarmups = Annotated[
    int,
    typer.Option(
        "--num-warmups", min=0, help="Requests sent first, in a stage that counts in no total.", rich_help_panel=LOAD
    ),
]
