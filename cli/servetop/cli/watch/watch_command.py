"""`servetop watch URL…`: a run without a load, which reads a server's metrics and sends nothing."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from servetop.cli.configuration.configure import run_config
from servetop.cli.configuration.output import Output
from servetop.cli.launch import launch
from servetop.cli.options.conversion import read_options
from servetop.cli.options.declaration import declared
from servetop.cli.options.run_options import RunOptions
from servetop.core.config import RunConfig, WorkloadConfig
from servetop.core.config_values.watch_config import WatchConfig
from servetop.core.errors import UsageError
from servetop.engines.metrics.prometheus_server import MetricsAddress
from servetop.run.watch.addresses import WatchedAddress, check_resolvable, distinct, read_addresses
from servetop.run.watch.prometheus_list import is_prometheus_list

if TYPE_CHECKING:
    from servetop.cli.framework.command_line import CommandLine
    from servetop.cli.options.watch_options import WatchOptions

_SUFFIXES = (".txt", ".list", ".lst", ".conf")
"""Endings of files that list servers; no host has such a name."""


def run_watch(line: CommandLine[WatchOptions]) -> int:
    """Watch the server of a command line; returns the exit code."""
    options = line.options
    output = Output(options=options.output, no_record=options.no_record, given=line.given)
    return launch(watch_config(line), output)


def watch_config(line: CommandLine[WatchOptions]) -> RunConfig:
    """Return the configuration of a watch; UsageError names the option that is wrong.

    Its workload has nothing but the headers, which go with every request for a page.
    """
    options = line.options
    prometheus = _prometheus(options)
    addresses, file = listed_servers(options.servers) if prometheus is None else ((prometheus,), None)
    several = len(addresses) > 1 or file is not None or options.all_addresses or prometheus is not None
    if several and options.metrics_url is not None:
        raise UsageError("--metrics-url belongs to one server, but each of several has its own metrics: leave it out")
    if options.all_addresses:
        check_resolvable(addresses)
    shared = {option.name for option in declared(RunOptions)} - {"duration", "threshold"}
    credentials = {} if prometheus is None else _credentials(options)
    given = {name: value for name, value in line.given.items() if name in shared - credentials.keys()}
    config = run_config(read_options(RunOptions, {**given, "url": (addresses[0].url,)}), ())
    workload = WorkloadConfig(headers=config.workload.headers, header_env=config.workload.header_env)
    check_thresholds(options, line.given)
    check_command(options, line.given)
    watch = WatchConfig(
        duration=options.duration,
        hold=options.hold,
        several=several,
        names=tuple(each.name for each in addresses) if several and prometheus is None else (),
        prometheus=None if prometheus is None else options.servers[0],
        file=None if file is None else str(file.absolute()),
        all_addresses=options.all_addresses,
        on_episode=options.on_episode,
        keep=options.keep,
    )
    engine = dataclasses.replace(config.engine, more_urls=tuple(each.url for each in addresses[1:]), **credentials)
    if any(credentials.values()):
        from servetop.engines.control.credentials import metrics_credentials

        metrics_credentials(engine, os.environ)  # a missing key is an error before anything is recorded
    return dataclasses.replace(
        config, engine=engine, workload=workload, stages=(), watch=watch, thresholds=options.threshold
    )


def _prometheus(options: WatchOptions) -> WatchedAddress | None:
    """Return the address of the Prometheus server that lists the servers; None for other servers."""
    if not any(map(is_prometheus_list, options.servers)):
        return None
    if len(options.servers) > 1 or options.all_addresses:
        raise UsageError("a Prometheus server with ?match= lists all servers of a watch: name it alone")
    selected = MetricsAddress.parse(options.servers[0], option="")
    return WatchedAddress.parse(selected.url)


def _credentials(options: WatchOptions) -> dict[str, Any]:
    """Return the fields of `EngineConfig` with the credentials of the Prometheus server that lists the servers."""
    return {"metrics_api_key_env": options.metrics_api_key_env, "metrics_header_env": options.metrics_header_env}


def check_thresholds(options: WatchOptions, given: Mapping[str, object]) -> None:
    """Raise UsageError for a threshold that cannot be parsed, or for a watch too short to decide any."""
    if not options.threshold:
        if "hold" in given:
            raise UsageError("--for: it is how long a --threshold has to be broken: add one")
        return
    from servetop.analysis.fleet.watch_thresholds import parse_watch_threshold  # not needed by every start

    for text in options.threshold:
        parse_watch_threshold(text)
    if options.duration is not None and options.duration < options.hold:
        raise UsageError(f"--for {options.hold:g}s is longer than --duration {options.duration:g}s: shorten it")


def check_command(options: WatchOptions, given: Mapping[str, object]) -> None:
    """Raise UsageError for a command of `--on-episode` that cannot be run."""
    if options.on_episode or "on_episode" in given:
        from servetop.run.watch.episode_commands import command_words  # not needed by every start

        command_words(options.on_episode)


def listed_servers(texts: Sequence[str]) -> tuple[tuple[WatchedAddress, ...], Path | None]:
    """Return the servers of a command line, and the file that lists them, if it is one; UsageError if neither."""
    if len(texts) == 1 and _may_be_file(texts[0]):
        path = Path(texts[0])
        return read_addresses(path), path
    files = [text for text in texts if _may_be_file(text)]
    if files:
        raise UsageError(f"{files[0]} is a file beside other servers: name the file alone, or list all in it")
    return distinct(WatchedAddress.parse(text) for text in texts), None


def _may_be_file(text: str) -> bool:
    """Whether a text names a file, or one that is missing: it has no scheme and no port."""
    if "://" in text:
        return False
    return Path(text).is_file() or text.startswith(("/", ".", "~")) or Path(text).suffix in _SUFFIXES
