"""The options of each command that runs or shows a load: those of `servetop` itself, sweep, replay and attach."""

import dataclasses
from pathlib import Path
from typing import Annotated

from servetop.cli.options import completions
from servetop.cli.options.declaration import Argument, Option, options_class
from servetop.cli.options.engine_options import (
    ApiKeyEnv,
    ConnectionOptions,
    EngineCommand,
    EngineName,
    EngineOptions,
    Model,
    Url,
)
from servetop.cli.options.load_options import LoadOptions
from servetop.cli.options.output_options import (
    MAX_FAILURES,
    DisplayOptions,
    OutputOptions,
    ResultOptions,
    WebOptions,
    output_option,
)
from servetop.cli.options.request_options import DataOptions, RequestOptions

RECORDING = Argument(
    "FILE|latest|sample",
    "A recording; latest is the newest one, sample one that ships with servetop.",
    complete=completions.recordings,
)

NoRecord = Annotated[bool, output_option("--no-record", "Keep no recording.")]


@options_class
class RepeatableOptions:
    """The options of every command that runs one load."""

    engine: EngineOptions = EngineOptions()
    connection: ConnectionOptions = ConnectionOptions()
    load: LoadOptions = LoadOptions()
    data: DataOptions = DataOptions()
    requests: RequestOptions = dataclasses.field(default_factory=RequestOptions)
    results: ResultOptions = dataclasses.field(default_factory=ResultOptions)
    output: OutputOptions = OutputOptions()
    no_record: NoRecord = False
    web: WebOptions = WebOptions()


@options_class
class RunOptions(RepeatableOptions):
    """The options of `servetop` without a command."""

    config: Annotated[
        Path | None,
        output_option(
            "--config",
            "Read options from a TOML file, or repeat the run of a recording; the command line overrides them.",
            brief="Read options from a TOML file or a recording.",
            unit="FILE",
            complete=completions.configs,
            in_files=False,
        ),
    ] = None
    version: Annotated[bool, Option("--version", "Print the version.", in_files=False)] = False


@options_class
class RerunOptions(RepeatableOptions):
    """The options of `servetop rerun`."""

    file: Annotated[str, RECORDING]
    anyway: Annotated[
        bool,
        Option(
            "--anyway",
            "Repeat it although the engine, its environment or the machine differs.",
            brief="Repeat it although something differs.",
        ),
    ] = False
    dry_run: Annotated[
        bool,
        Option(
            "--dry-run",
            "Print what would run and what differs, and exit.",
            brief="Print what would run and what differs.",
        ),
    ] = False


SWEEP = Argument(
    "FILE.toml|PRESET",
    "A sweep file (every key: docs/how-to/sweep.md), or the name of a preset.",
    complete=completions.sweeps,
)


@options_class
class SweepOptions:
    """The options of `servetop sweep`."""

    file: Annotated[str, SWEEP] = ""
    engine: EngineName = None
    model: Model = None
    url: Url = ()
    engine_command: EngineCommand = ()
    api_key_env: ApiKeyEnv = None
    max_failures: Annotated[str | None, MAX_FAILURES] = None
    output: OutputOptions = OutputOptions()
    resume: Annotated[bool, output_option("--resume", "Resume an interrupted sweep.")] = False
    dry_run: Annotated[
        bool, Option("--dry-run", "Print the cells, the restarts of the engine and the time, and exit.")
    ] = False
    example: Annotated[bool, Option("--example", "Print a sweep file with comments that runs as it is, and exit.")] = (
        False
    )


@options_class
class ReplayOptions:
    """The options of `servetop replay`."""

    file: Annotated[
        str | None,
        Argument(
            "FILE|latest|sample",
            "A recording; latest is the newest one, sample one that ships with servetop. (default: choose from a list)",
            complete=completions.recordings,
        ),
    ] = None
    display: DisplayOptions = DisplayOptions()
    read_only: Annotated[
        bool, Option("--read-only", "Do not control the run, and do not rename or delete recordings.")
    ] = False
    web: WebOptions = WebOptions()


@options_class
class AttachOptions:
    """The options of `servetop attach`."""

    run: Annotated[str, Argument("RUN|latest", "The id of a run, or its beginning, as servetop ps lists it.")] = (
        "latest"
    )
    display: DisplayOptions = DisplayOptions()
