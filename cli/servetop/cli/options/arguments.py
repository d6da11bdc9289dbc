"""The arguments of commands, and the options that one of them alone has; each with what the shell may offer for it."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from servetop.cli.options import completions

_SWEEP = typer.Argument(
    metavar="FILE.toml|PRESET", help="A sweep file, or a preset's name.", autocompletion=completions.sweeps
)
SweepName = Annotated[str, _SWEEP]
SweepOrNone = Annotated[Optional[str], _SWEEP]
Preset = Annotated[
    Optional[str],
    typer.Option("--preset", help="The same, as an option.", autocompletion=completions.sweeps),
]
RecordingName = Annotated[
    str,
    typer.Argument(
        metavar="FILE|latest",
        help="A recording; latest is the newest one, sample:h200 one of a real GPU.",
        autocompletion=completions.recordings,
    ),
]
RecordingNames = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE|latest...",
        help="Recordings; latest is the newest one.",
        autocompletion=completions.recordings,
    ),
]
RecordingOrNone = Annotated[
    Optional[str],
    typer.Argument(
        metavar="FILE|latest",
        help="A recording; latest is the newest one, sample:h200 one of a real GPU. (default: choose one)",
        autocompletion=completions.recordings,
    ),
]
OneEngine = Annotated[
    Optional[str],
    typer.Argument(help="One engine, with all that is known of it.", autocompletion=completions.engines),
]
GpuProfile = Annotated[
    Optional[str], typer.Option("--gpu", help="GPU profile, as a100-40.", autocompletion=completions.gpus)
]
EngineProfile = Annotated[
    Optional[str],
    typer.Option("--engine-profile", help="As vllm-0.2.1.", autocompletion=completions.engine_profiles),
]
ServerArguments = Annotated[
    Optional[list[str]],
    typer.Argument(metavar="[--port P] [--model M] [...]", autocompletion=completions.server_values),
]
