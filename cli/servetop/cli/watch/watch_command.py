"""`servetop watch URL`: a run without a load, which reads a server's metrics and sends nothing."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from servetop.cli.configuration.configure import run_config
from servetop.cli.configuration.output import Output
from servetop.cli.launch import launch
from servetop.cli.options.conversion import read_options
from servetop.cli.options.declaration import declared
from servetop.cli.options.run_options import RunOptions
from servetop.core.config import RunConfig, WorkloadConfig
from servetop.core.config_values.watch_config import WatchConfig

if TYPE_CHECKING:
    from servetop.cli.framework.command_line import CommandLine
    from servetop.cli.options.watch_options import WatchOptions


def run_watch(line: CommandLine[WatchOptions]) -> int:
    """Watch the server of a command line; returns the exit code."""
    options = line.options
    output = Output(options=options.output, no_record=options.no_record, given=line.given)
    return launch(watch_config(line), output)


def watch_config(line: CommandLine[WatchOptions]) -> RunConfig:
    """Return the configuration of a watch; UsageError names the option that is wrong.

    Its workload has nothing but the headers, which go with every request for a page.
    """
    shared = {option.name for option in declared(RunOptions)} - {"duration"}
    given = {name: value for name, value in line.given.items() if name in shared}
    config = run_config(read_options(RunOptions, {**given, "url": (line.options.server,)}), ())
    workload = WorkloadConfig(headers=config.workload.headers, header_env=config.workload.header_env)
    watch = WatchConfig(duration=line.options.duration)
    return dataclasses.replace(config, workload=workload, stages=(), watch=watch)
