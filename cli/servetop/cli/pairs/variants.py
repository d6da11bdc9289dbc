"""The two configurations of a series, from two files or from common options and the options of each."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Sequence

import click

from servetop.cli.configuration.configure import run_config
from servetop.cli.configuration.idle_options import RunChoices, refuse_idle_of_run
from servetop.cli.framework.click_commands import CommandSpec
from servetop.cli.framework.command_line import CommandLine, command_line_of
from servetop.cli.options.config_file import with_config_file
from servetop.cli.options.declaration import GivenValues, declared
from servetop.cli.options.output_options import OutputOptions, WebOptions
from servetop.cli.options.pairs_options import RunPairsOptions
from servetop.cli.options.run_options import RunOptions
from servetop.core.config import RunConfig, StageConfig, to_data
from servetop.core.errors import UsageError
from servetop.run.pairs.series_folder import ArmConfigs

_NOT_OF_ONE_ARM = {
    "seed",
    "no_record",
    "version",
    *(each.name for group in (OutputOptions, WebOptions) for each in declared(group)),
}
"""Options that apply to the series or have no meaning in it."""
_LENIENT = {"ignore_unknown_options": True, "allow_extra_args": True}
_OF_A_RUN = {each.name for each in declared(RunOptions)}


def arm_configs(line: CommandLine[RunPairsOptions]) -> ArmConfigs:
    """Return the configurations of A and B; UsageError unless both send the same requests."""
    files, series = line.options.files, line.options.series
    if len(files) not in (0, 2):
        raise UsageError(f"give two files, A and B: {len(files)} given")
    if not files and series.a is None and series.b is None:
        raise UsageError("nothing to compare: give two files, or --a and --b with the options of each")
    common = {name: value for name, value in line.given.items() if name in _OF_A_RUN}
    engine_args = line.invocation.engine_args
    a, b = (
        _config(common, engine_args, text or "", option=option, file=file)
        for text, option, file in zip((series.a, series.b), ("--a", "--b"), files or (None, None), strict=True)
    )
    _check_same_load(a, b)
    return ArmConfigs(a=a, b=b)


def _config(common: GivenValues, engine_args: Sequence[str], text: str, *, option: str, file: str | None) -> RunConfig:
    own, own_args = split_variant(text, option=option)
    given = {**common, **own}
    if file is not None:
        if "config" in given:
            raise UsageError(f"{option}: --config and {file} exclude each other: give one of them")
        given["config"] = file
    options, config_file = with_config_file(given)
    config = run_config(options, (*engine_args, *own_args), config_file)
    refuse_idle_of_run(given, RunChoices(config))
    return config


def split_variant(text: str, *, option: str) -> tuple[GivenValues, tuple[str, ...]]:
    """Return the values of servetop's own options in a text, and all other words, which are the engine's.

    Words after `--` are the engine's even if servetop has an option of that name.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"{option} {text!r}: {str(error).lower()}") from None
    at = words.index("--") if "--" in words else len(words)
    command = click.Command(**CommandSpec(lambda _: 0, RunOptions).click_settings(), context_settings=_LENIENT)
    context = command.make_context(option, words[:at])
    given = command_line_of(context, RunOptions).given
    for each in declared(RunOptions):
        if each.name in given and each.name in _NOT_OF_ONE_ARM:
            raise UsageError(f"{option}: {each.spelling} cannot differ between A and B")
    return given, (*context.args, *words[at + 1 :])


def _check_same_load(a: RunConfig, b: RunConfig) -> None:
    """UsageError if the requests or the load of A and B differ: pairs compare equal requests."""
    workloads = [to_data(dataclasses.replace(each.workload, endpoint="")) for each in (a, b)]
    keys = dict.fromkeys((*workloads[0], *workloads[1]))
    differing = next((key for key in keys if workloads[0].get(key) != workloads[1].get(key)), None)
    if differing is not None:
        values = " and ".join(str(each.get(differing, "not set")) for each in workloads)
        raise UsageError(f"A and B have to send the same requests, but {differing} is {values}")
    if _loads(a) != _loads(b):
        raise UsageError("A and B have to send the same load, but their stages differ: give the load once for both")


def _loads(config: RunConfig) -> list[StageConfig]:
    return [dataclasses.replace(stage, max_num_seqs=None) for stage in config.stages]
