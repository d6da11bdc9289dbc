"""The interface from which a viewer reads a run: a recording, finished or growing, without a difference."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from servetop.core.clock import ClockAnchor
from servetop.core.config import RunConfig
from servetop.core.events import Action, Command, LogLine, Note, ReplicaSample, RequestRecord, RunEnd, StageChange
from servetop.core.interfaces.request_in_flight import RequestInFlight
from servetop.core.interfaces.search_state import SearchState
from servetop.core.interfaces.series_scrape import SeriesScrape
from servetop.core.interfaces.skipped_cell import SkippedCell
from servetop.core.tick import Tick

if TYPE_CHECKING:
    from servetop.core.interfaces.replica_change import ReplicaChange

NOT_IMPORTED = "not in the imported file"
"""Why a run of another load generator lacks what servetop would have measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFacts:
    """What is known about the engine once it is ready; None is unknown."""

    name: str
    """Adapter name, such as `vllm`."""
    title: str
    """The name as its makers spell it, such as `vLLM`."""
    version: str | None = None
    model: str | None = None
    """The model name for requests."""
    models: tuple[str, ...] = ()
    """All models in the server's own list; empty if it has none."""
    url: str | None = None
    replica_urls: tuple[str, ...] = ()
    """The replicas' addresses if there are several; `kv_blocks_total` is then their sum."""
    managed: bool = False
    """servetop started it and will stop it."""
    pid: int | None = None
    kv_blocks_total: int | None = None
    """Usable KV blocks."""
    block_size: int | None = None
    """Tokens per KV block."""
    cache_page: int | None = None
    """Tokens that the prefix cache keeps or drops together, if they are not a KV block."""
    max_num_seqs: int | None = None
    max_model_len: int | None = None
    changes_batch_size_live: bool = False
    """`max_num_seqs` can change without a restart."""
    not_exported: tuple[str, ...] = ()
    """Fields of EngineSample that this engine does not export."""
    endpoints: tuple[str, ...] = ("completions", "chat", "responses")
    """Valid values of `--endpoint`, the default first."""
    page_age: float = 0.0
    """Seconds by which its metrics page may be older than the scrape; 0: as of the scrape, and before format 1.11."""
    exported: tuple[Mapping[str, Any], ...] = ()
    """The metrics of the engine page, as data, if they are not those that servetop knows for `name`."""
    through: str = ""
    """The Prometheus server through which a watched server is known, if it cannot be reached itself; else empty."""

    @property
    def attached(self) -> bool:
        """Whether servetop did not start the server, so that there may be a network and other clients before it."""
        return self.url is not None and not self.managed

    @property
    def prefix_block(self) -> int | None:
        """Tokens of the smallest prefix that the prefix cache keeps."""
        return self.cache_page or self.block_size


@dataclass(frozen=True, slots=True, kw_only=True)
class RunHeader:
    """The header of a recording, written before anything happens; `engine` is added when it is ready."""

    config: RunConfig
    anchor: ClockAnchor
    versions: Mapping[str, str] = field(default_factory=dict)
    """Versions of servetop, Python and the packages that matter."""
    host: Mapping[str, Any] = field(default_factory=dict)
    """Name, processors, memory and kernel of the client machine."""
    engine: EngineFacts | None = None
    pid: int | None = None
    """The process that writes the recording."""
    manifest: Mapping[str, Any] = field(default_factory=dict)
    """What else identifies the run: command lines, environment, GPUs, digests; empty before format 1.8."""
    random_tokens: str | None = None
    """`ordinary` or `unchecked`: what prompts of random token ids consist of; None without such, and before 1.12."""
    predicted: bool = False
    """Whether the simulator computed the run, without a server; never before 1.14."""
    has_engine_series: bool = True
    """Whether the recording has the series of the engine page; one before format 1.6 has not."""

    @property
    def imported(self) -> str | None:
        """What another load generator's run was imported from, as in `vLLM bench, result.json`; None for any other."""
        found = self.manifest.get("imported")
        if not isinstance(found, Mapping):
            return None
        file = found.get("file")
        name = file.get("name") if isinstance(file, Mapping) else None
        tool = " ".join(str(found[key]) for key in ("tool", "version") if found.get(key))
        return ", ".join(str(each) for each in (tool, name) if each)

    @property
    def is_scheduled_import(self) -> bool:
        """Whether it was imported from a file with an open loop whose request rate the file does not have."""
        found = self.manifest.get("imported")
        return isinstance(found, Mapping) and found.get("scheduled") is True


@dataclass(frozen=True, slots=True, kw_only=True)
class RunUpdate:
    """What was added to a run since the last call, each sequence in order of time."""

    ticks: Sequence[Tick] = ()
    stages: Sequence[StageChange] = ()
    skipped: Sequence[SkippedCell] = ()
    notes: Sequence[Note] = ()
    commands: Sequence[Command] = ()
    """New commands, and earlier ones whose reply has arrived."""
    replica_samples: Sequence[ReplicaSample] = ()
    """Samples of each replica, if there are several."""
    replica_changes: Sequence[ReplicaChange] = ()
    """Changes of watched servers, if there are several; none before format 1.21."""
    engine_series: Sequence[SeriesScrape] = ()
    """Scrapes of the series of the engine page."""
    log_lines: Sequence[LogLine] = ()
    search_states: Sequence[SearchState] = ()
    """Decisions of a search; empty for another run, and before format 1.16."""
    header: RunHeader | None = None
    """Set when it changed: the engine is ready."""
    end: RunEnd | None = None
    more: bool = False
    """There are more ticks than these; they and everything else follow with the next calls."""


class RunSource(Protocol):
    """A run that can be read and, while it is live, steered."""

    @property
    def name(self) -> str:
        """A short name for titles."""
        ...

    @property
    def header(self) -> RunHeader:
        """The current header."""
        ...

    def poll(self, *, most_ticks: int | None = None) -> RunUpdate:
        """Return everything new since the last call, the whole run in the first call. Takes milliseconds.

        If more than `most_ticks` ticks are new, returns that many ticks and nothing else.
        """
        ...

    def is_live(self) -> bool:
        """Whether the run has not ended and its process is alive: it will grow, and commands will be applied."""
        ...

    def send(self, action: Action, *, value: float | None = None, text: str = "") -> None:
        """Sends a command to the run; `poll` returns its reply."""
        ...

    def requests(
        self, start: float, until: float, *, ended_by: float = math.inf, most: int | None = None
    ) -> Sequence[RequestRecord]:
        """Return finished requests that were in flight between two times, by due time.

        `ended_by` excludes requests that ended later, without reading them; `most` limits the result to those due last.
        """
        ...

    def in_flight(self) -> Sequence[RequestInFlight]:
        """Return the requests in flight as of a second ago, those sent last, by due time; none after the end."""
        ...

    def past_ticks(self, first: int, last: int) -> Sequence[Tick]:
        """Return ticks that `poll` returned before, from number `first` to number `last`, both included."""
        ...
