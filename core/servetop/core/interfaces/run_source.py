"""What a viewer reads a run from: a recording, finished or growing. Nothing here says which."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from servetop.core.clock import ClockAnchor
from servetop.core.config import RunConfig
from servetop.core.events import Action, Command, LogLine, Note, ReplicaSample, RequestRecord, RunEnd, StageChange
from servetop.core.tick import Tick


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFacts:
    """What is known of the engine once it answers; None is not known."""

    name: str
    """Adapter name, such as `vllm`."""
    title: str
    """As its makers write it, such as `vLLM`."""
    version: str | None = None
    model: str | None = None
    """The name that requests must ask for."""
    models: tuple[str, ...] = ()
    """All that it serves, by its own list; empty where it has none."""
    url: str | None = None
    replica_urls: tuple[str, ...] = ()
    """Of all servers, where there are several; `kv_blocks_total` is then that of all of them."""
    managed: bool = False
    """servetop started it, and will stop it."""
    pid: int | None = None
    kv_blocks_total: int | None = None
    """Usable KV blocks."""
    block_size: int | None = None
    """Tokens per KV block."""
    max_num_seqs: int | None = None
    max_model_len: int | None = None
    changes_batch_size_live: bool = False
    """`max_num_seqs` can change without a restart."""
    not_exported: tuple[str, ...] = ()
    """Fields of EngineSample that this engine does not export."""
    endpoints: tuple[str, ...] = ("completions", "chat", "responses")
    """What `--endpoint` may name, the usual one first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunHeader:
    """What a recording says of its run before anything happens; `engine` is filled in when it answers."""

    config: RunConfig
    anchor: ClockAnchor
    versions: Mapping[str, str] = field(default_factory=dict)
    """Of servetop, Python and the packages that matter."""
    host: Mapping[str, Any] = field(default_factory=dict)
    """Name, processors, memory, kernel of the client machine."""
    engine: EngineFacts | None = None
    pid: int | None = None
    """The process that writes the recording."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunUpdate:
    """What was added to a run since it was asked last, each in order of time."""

    ticks: Sequence[Tick] = ()
    stages: Sequence[StageChange] = ()
    notes: Sequence[Note] = ()
    commands: Sequence[Command] = ()
    """New commands, and older ones again whose reply came since."""
    replica_samples: Sequence[ReplicaSample] = ()
    """Where there are several servers, of each alone."""
    log_lines: Sequence[LogLine] = ()
    header: RunHeader | None = None
    """When it changed: the engine's facts came in."""
    end: RunEnd | None = None
    more: bool = False
    """These are some of the ticks that are there; those that follow, and all else, come with the next calls."""


class RunSource(Protocol):
    """A run that can be looked at, and, while it lives, steered."""

    @property
    def name(self) -> str:
        """Short name for titles."""
        ...

    @property
    def header(self) -> RunHeader:
        """As of now."""
        ...

    def poll(self, *, most_ticks: int | None = None) -> RunUpdate:
        """All that is new since the last call; the first call gives everything so far. Takes milliseconds.

        Where more than `most_ticks` are new it gives so many of them, and nothing else.
        """
        ...

    def is_live(self) -> bool:
        """The run has not ended and its process is there: more will come, and commands will be obeyed."""
        ...

    def send(self, action: Action, *, value: float | None = None, text: str = "") -> None:
        """Ask the run for a change; what becomes of it comes back through `poll`."""
        ...

    def requests(
        self, start: float, until: float, *, ended_by: float = math.inf, most: int | None = None
    ) -> Sequence[RequestRecord]:
        """Finished requests that were in flight at any time between two instants, by due time.

        `ended_by` leaves out those that ended later, and need not look at them; `most` keeps those due last.
        """
        ...

    def past_ticks(self, first: int, last: int) -> Sequence[Tick]:
        """Ticks that `poll` gave before, from number `first` to number `last`, both included."""
        ...
