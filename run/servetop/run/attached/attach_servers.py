"""Attaches a run to its servers, and finds out how an unknown one wants its requests."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from servetop.core.clock import Clock
from servetop.core.config import EngineConfig, WorkloadConfig
from servetop.core.events import LogLine
from servetop.engines.attach import FALLBACK, attach_engine
from servetop.engines.control.connection import route_to
from servetop.engines.control.credentials import api_key
from servetop.engines.control.server_url import ServerUrl
from servetop.engines.handle import EngineHandle
from servetop.workload.request_headers import all_headers

if TYPE_CHECKING:
    from servetop.engines.replicas import OnChange, ReplicaGroup
    from servetop.run.attached.request_format import RequestFormat
    from servetop.run.attached.single_request import RequestTarget


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachedServers:
    """The servers of a run that servetop did not start."""

    handle: EngineHandle | ReplicaGroup
    replicas: ReplicaGroup | None = None
    """The handle, if there are several servers."""
    request_format: RequestFormat | None = None
    """How an unknown server wants its requests; None: as usual for its engine, or as the user says."""
    remarks: tuple[str, ...] = ()
    """What to note when the run begins."""


async def attach_servers(
    config: EngineConfig,
    clock: Clock,
    workload: WorkloadConfig,
    *,
    on_line: Callable[[LogLine], None],
    on_change: OnChange,
    watched: bool = False,
) -> AttachedServers:
    """Attach to the server, or servers, of a run whose requests have the headers of `workload`.

    EngineError if that fails. A server of unknown engine receives some short requests, unless the endpoint is given or
    it is only `watched`.
    """
    headers, replicas = all_headers(workload, os.environ), None
    if config.front_door is not None:
        from servetop.engines.replicas import check_load_balancer

        await check_load_balancer(config.front_door, api_key=api_key(config, os.environ), headers=headers)
    handle: EngineHandle | ReplicaGroup
    if config.more_urls:
        from servetop.engines.replicas import attach_replicas  # for several servers only

        handle = replicas = await attach_replicas(config, clock, on_change=on_change, headers=headers)
    else:
        handle = await attach_engine(config, clock, headers=headers, on_line=on_line, watched=watched)
    found, remark = None, ""
    if handle.facts.name == FALLBACK and not (workload.endpoint or watched):
        found, remark = await _format_of(handle, config, workload)
    remarks = tuple(each for each in (handle.remark, remark) if each)
    return AttachedServers(handle=handle, replicas=replicas, request_format=found, remarks=remarks)


async def _format_of(
    handle: EngineHandle | ReplicaGroup, config: EngineConfig, workload: WorkloadConfig
) -> tuple[RequestFormat, str]:
    """Find the format, with a remark if it is not the usual one; its endpoint becomes the first of the facts."""
    from servetop.run.attached.find_format import find_format

    try:
        target = await _target(handle, config, workload)
        found, remark = await find_format(target, workload, timeout=config.attach_timeout)
    except BaseException:
        await handle.stop()
        raise
    others = (each for each in handle.facts.endpoints if each != found.endpoint)
    handle.facts = replace(handle.facts, endpoints=(found.endpoint, *others))
    return found, remark


async def _target(handle: EngineHandle | ReplicaGroup, config: EngineConfig, workload: WorkloadConfig) -> RequestTarget:
    from servetop.run.attached.find_format import SHORT_TEXT
    from servetop.run.attached.single_request import RequestTarget

    url = ServerUrl.parse(config.front_door).text if config.front_door else handle.url
    return RequestTarget(
        url=url,
        model=next(iter(workload.model_mix), handle.facts.model or ""),
        api_key=api_key(config, os.environ),
        headers=all_headers(workload, os.environ),
        connection=route_to(url, config.connection, os.environ).connection,
        token_ids=await handle.tokenize(SHORT_TEXT),
        continuous_usage=handle.continuous_usage,
    )
