"""What the header of a recorded run would be if it were repeated on this machine now."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from servetop.core.clock import MonotonicClock
from servetop.core.config import EngineConfig, RunConfig
from servetop.core.errors import ServetopError
from servetop.core.interfaces.run_source import EngineFacts, RunHeader
from servetop.core.system.environment import engine_environment
from servetop.core.text.known_secrets import redactor_of
from servetop.engines.attach import FALLBACK, attach_engine
from servetop.engines.engine_registry import load_engine
from servetop.engines.handle import LaunchedServer
from servetop.engines.inventory import EXAMPLE_PORT
from servetop.engines.process.container import with_launcher
from servetop.run.manifest.machine_details import machine_details
from servetop.run.manifest.manifest_recorder import launched_details
from servetop.run.manifest.versions import host_facts, versions
from servetop.workload.request_headers import all_headers


@dataclass(frozen=True, slots=True)
class RunHere:
    """A run as it would be on this machine."""

    header: RunHeader
    """What is known before the start, without secrets; sizes that only a running engine reports are those recorded."""
    trouble: tuple[str, ...] = ()
    """Why the engine cannot be started or reached, one line each."""


def run_here(recorded: RunHeader, config: RunConfig, environ: Mapping[str, str]) -> RunHere:
    """Return the run of `config`, which repeats `recorded`, here; reads model and data, and asks an attached server."""
    manifest: dict[str, Any] = dict(machine_details(config, environ))
    trouble: list[str] = []
    facts = recorded.engine
    try:
        if config.engine.url is None:
            manifest["engine"] = _launch(config.engine, environ)
            facts = with_version(facts, _installed(config.engine))
        else:
            attached = asyncio.run(_attached(config.engine, all_headers(config.workload, environ)))
            facts = with_recorded_endpoint(attached, facts)
    except ServetopError as error:
        trouble.append(str(error))
    header = RunHeader(
        config=config,
        anchor=recorded.anchor,
        versions=versions(),
        host=host_facts(),
        engine=facts,
        manifest=redactor_of(config, environ).data(manifest),
    )
    return RunHere(header, tuple(trouble))


def _launch(config: EngineConfig, environ: Mapping[str, str]) -> dict[str, Any]:
    """The command line and environment with which the engine would start; ServetopError if it is not installed."""
    port = config.port or EXAMPLE_PORT
    command = load_engine(config.name).launch(config, port=port)
    command = with_launcher(command, config, environ=environ)
    environment = {**engine_environment(environ), **command.env}
    return launched_details(LaunchedServer(argv=command.argv, environment=environment, port=port))


def _installed(config: EngineConfig) -> str | None:
    """Return the version that would start; None if it is unknown, as in a container."""
    if config.launcher:
        return None
    if config.command:
        return environment_version(config.command, config.name)
    return load_engine(config.name).installed()


def environment_version(command: Sequence[str], package: str) -> str | None:
    """Return the version of a package in the Python environment that a command names; None if there is none."""
    for word in command:
        path = Path(word).expanduser()
        root = path.parent.parent if path.parent.name == "bin" else path
        name = package.replace("-", "_")
        found = next(root.glob(f"lib/python3*/site-packages/{name}-*.dist-info"), None) if path.is_absolute() else None
        if found is not None:
            return found.name.removesuffix(".dist-info").removeprefix(f"{name}-")
    return None


def with_version(facts: EngineFacts | None, installed: str | None) -> EngineFacts | None:
    """Return recorded facts with the version of the installed package, if both are version numbers and differ.

    The local part of a version, as in `0.10.1+cu128`, does not count: a server may leave it out.
    """
    if facts is None or facts.version is None or installed is None:
        return facts
    comparable = installed[:1].isdigit() and facts.version[:1].isdigit()
    if not comparable or installed.partition("+")[0] == facts.version.partition("+")[0]:
        return facts
    return dataclasses.replace(facts, version=installed)


def with_recorded_endpoint(facts: EngineFacts, recorded: EngineFacts | None) -> EngineFacts:
    """Return facts of an unknown server with the recorded order of endpoints: only requests tell which one it takes."""
    if recorded is None or facts.name != FALLBACK or set(facts.endpoints) != set(recorded.endpoints):
        return facts
    return dataclasses.replace(facts, endpoints=recorded.endpoints)


async def _attached(config: EngineConfig, headers: Mapping[str, str]) -> EngineFacts:
    """Return the facts of the first server; EngineError if one of them does not answer, or is another engine."""
    facts: list[EngineFacts] = []
    for url in (config.url, *config.more_urls):
        one = dataclasses.replace(config, url=url, more_urls=(), front_door=None, max_num_seqs=None)
        handle = await attach_engine(one, MonotonicClock(), headers=headers)
        facts.append(handle.facts)
        await handle.stop()
    return dataclasses.replace(facts[0], replica_urls=tuple(each.url or "" for each in facts) if len(facts) > 1 else ())
