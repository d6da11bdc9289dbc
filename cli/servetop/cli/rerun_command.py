"""`servetop rerun`: repeats the run of a recording, or says what it needs and does not find here."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from servetop.analysis.manifest.manifest_diff import manifest_differences
from servetop.analysis.manifest.manifest_entries import launch_arguments
from servetop.cli.configuration.configure import run_config
from servetop.cli.configuration.output import Output
from servetop.cli.launch import launch
from servetop.cli.options.config_file import missing_secrets, with_config_file
from servetop.cli.options.declaration import GivenValues
from servetop.cli.options.run_options import RerunOptions
from servetop.core.config import RunConfig
from servetop.core.errors import ExitCode, UsageError
from servetop.core.interfaces.run_source import RunHeader
from servetop.recordings.library.catalog import resolve
from servetop.recordings.read.reader import RecordingReader
from servetop.run import console
from servetop.run.manifest.rerun_check import Obstacle, listed, obstacles
from servetop.run.manifest.run_here import run_here

REPEATS = "repeats"
"""Key of the metadata that names the recording that a run repeats."""
_OWN = ("file", "anyway", "dry_run")


def run_rerun(options: RerunOptions, given: GivenValues, *, engine_args: Sequence[str], output: Output) -> int:
    """Repeat a run, unless something is missing; return the exit code. UsageError, after a line for each reason."""
    path = resolve(options.file)
    with contextlib.closing(RecordingReader.open(path)) as reader:
        recorded = reader.header
    if recorded.imported is not None:
        raise UsageError(f"{path.stem} was imported from {recorded.imported}: repeat it with that tool")
    config, found = _configuration(recorded, path, given, engine_args)
    here = run_here(recorded, config, os.environ)
    found += [Obstacle(text, overridable=False) for text in here.trouble]
    if not here.trouble:
        found += obstacles(recorded, here.header, given=given)
    refused = [each for each in found if not (options.anyway and each.overridable)]
    if options.dry_run:
        _print_plan(path, recorded, here.header, refused, as_json=options.output.as_json)
        return int(ExitCode.USAGE if refused else ExitCode.OK)
    if refused:
        raise _refusal(path, refused, as_json=options.output.as_json)
    return launch(config, output)


def _configuration(
    recorded: RunHeader, path: Path, given: GivenValues, engine_args: Sequence[str]
) -> tuple[RunConfig, list[Obstacle]]:
    """The configuration to run and why it is incomplete; the recorded one if the options do not give a valid one."""
    found: list[Obstacle] = []
    config = recorded.config
    own = {name: value for name, value in given.items() if name not in _OWN}
    try:
        options, file = with_config_file({**own, "config": str(path)})
        config = run_config(options, engine_args, file, allow_redacted=True)
    except UsageError as error:
        found.append(Obstacle(str(error), overridable=False))
    found += [
        Obstacle(f"the recording does not contain the secret value of {key}: give it again", overridable=False)
        for key in missing_secrets(config)
    ]
    return dataclasses.replace(config, metadata={**config.metadata, REPEATS: path.stem}), found


def _refusal(path: Path, refused: Sequence[Obstacle], *, as_json: bool) -> UsageError:
    """Return the error; the reasons are part of it in JSON and if there is only one, else printed before it."""
    hint = " (--anyway repeats it nevertheless)" if all(each.overridable for each in refused) else ""
    texts = [each.text for each in refused]
    if as_json or len(texts) == 1:
        return UsageError(f"{path.stem} cannot be repeated here: {'; '.join(texts)}{hint}")
    for text in texts:
        console.status(f"  {text}")
    return UsageError(f"{path.stem} cannot be repeated here, for the {len(texts)} reasons above{hint}")


def _print_plan(
    path: Path, recorded: RunHeader, here: RunHeader, refused: Sequence[Obstacle], *, as_json: bool
) -> None:
    """Print the command lines, everything that differs, and what prevents the run."""
    differences = manifest_differences(recorded, here)
    command_line, engine = recorded.manifest.get("command_line"), launch_arguments(here)
    if as_json:
        console.out_json(
            {
                "repeats": str(path),
                "recorded_command_line": command_line,
                "engine": engine or here.config.engine.url,
                "differences": [dataclasses.asdict(each) for each in differences],
                "refused": [each.text for each in refused],
            }
        )
        return
    recorded_as = shlex.join(map(str, command_line)) if isinstance(command_line, list) else "not recorded"
    console.out(
        f"repeats      {path}",
        f"recorded as  {recorded_as}",
        f"engine       {shlex.join(map(str, engine)) or here.config.engine.url or 'cannot be started'}",
        *(["differs (recorded → here)"] if differences else ["nothing differs"]),
        *(f"  {line}" for line in listed(differences)),
        *(["refused"] if refused else []),
        *(f"  {each.text}" for each in refused),
    )
