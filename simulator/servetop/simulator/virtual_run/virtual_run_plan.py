"""What a virtual run does: the configuration of a run, the simulated machine, the client's costs, and faults."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from servetop.core.config import RunConfig
from servetop.simulator.model.settings import SimSpec
from servetop.simulator.scheduling.build import sim_spec
from servetop.simulator.virtual_run.engine_faults import EnginePause, KvLeak, check_pauses
from servetop.simulator.virtual_run.virtual_gpu import GpuTelemetry


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCosts:
    """CPU time of the sender's event loop, which does one thing after the other; in seconds."""

    per_request: float = 150e-6
    """To send one request: its slip on an idle sender."""
    per_chunk: float = 25e-6
    """To read one token."""
    per_beat: float = 100e-6
    """Every 20 ms, for all the rest."""
    slow_from: float = math.inf
    """Run time from which every piece of work takes `slowdown` times as long."""
    slowdown: float = 1.0

    def scale(self, at: float) -> float:
        """Factor of all costs at a time."""
        return self.slowdown if at >= self.slow_from else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """A period in which the engine fails."""

    kind: OutageKind
    start: float
    """Run time in seconds."""
    until: float = math.inf
    """Run time at which it ends; a crash never ends."""
    share: float = 1.0
    """Fraction of the new requests that fail, chosen at random."""


class OutageKind(StrEnum):
    """How an engine fails."""

    HTTP_500 = "http 500"
    """It answers new requests with an error; those in flight continue."""
    CRASH = "crash"
    """Its process ends: requests in flight are cut off, new ones refused, metrics and all later work missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualRunPlan:
    """One virtual run. The engine's batch limit and KV blocks are set in `settings`, as `settings.apply` lists them."""

    config: RunConfig
    gpu: str = "a100-40"
    engine_profile: str = "vllm-0.2.1"
    settings: Mapping[str, Any] = field(default_factory=dict)
    client: ClientCosts = ClientCosts()
    outages: tuple[Outage, ...] = ()
    leak: KvLeak | None = None
    """KV blocks that each engine loses."""
    pauses: tuple[EnginePause, ...] = ()
    """Pauses of all engines, in order of time; ValueError for pauses that overlap."""
    replicas: int = 1
    """Number of engines, each on its own GPU."""
    replica_settings: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    """Settings of single replicas, on top of `settings`: replicas that are not equal."""
    router: str = "round-robin"
    """`round-robin`, `least-loaded`, or `random`: each request to any replica."""
    at_boundaries: bool = False
    """Whether requests that arrive at the start of an iteration take part in it, and refusals take no time, as in a
    prediction; otherwise the first request to arrive at an idle engine starts an iteration alone."""
    missing: tuple[int, ...] = ()
    """Replicas that do not answer; the others receive their requests."""
    gpus: GpuTelemetry | None = None
    """None for an engine whose GPU cannot be read."""
    token_times: bool = False
    """Whether each token of a request has its time; otherwise only the first and the last one have."""
    whole_prompts: bool = False
    """Whether the prefix cache also keeps the part of each prompt that no other request has."""
    cached_requests: int = 0
    """Number of requests, from the first, whose prompts are in the prefix cache at the start, as after a run with this
    seed; only their shared prefixes without `whole_prompts`."""
    begin: float = 0.3
    """Run time at which the load starts; the engine is ready before."""
    first_stage: int = 0
    """Number of the first stage."""

    def __post_init__(self) -> None:
        check_pauses(self.pauses)

    @property
    def spec(self) -> SimSpec:
        """Return the specification of the simulated engine, without `replica_settings`."""
        return self._spec(self.settings)

    def spec_of(self, replica: int) -> SimSpec:
        """Return the specification of one replica."""
        return self._spec({**self.settings, **self.replica_settings.get(replica, {})})

    def _spec(self, settings: Mapping[str, Any]) -> SimSpec:
        return sim_spec(self.config.engine.model, gpu=self.gpu, engine=self.engine_profile, settings=settings)
