"""A change of one of several watched servers: it responds, is gone, or is not listed any more."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum

from servetop.core.config import from_data, to_data
from servetop.core.errors import UsageError
from servetop.core.interfaces.run_source import EngineFacts


class ReplicaState(StrEnum):
    """Whether a watched server responds, and what it did since it was listed."""

    ATTACHING = "attaching"
    """It is listed, and has not responded yet."""
    ATTACHED = "attached"
    RESTARTED = "restarted"
    """It responds, and its counters began again at 0."""
    GONE = "gone"
    """It does not respond."""
    REFUSED = "refused"
    """It responds, but cannot be watched: no engine, or a key is missing."""
    REMOVED = "removed"
    """It is not listed any more."""

    @property
    def responds(self) -> bool:
        """Whether its metrics are read."""
        return self in (ReplicaState.ATTACHED, ReplicaState.RESTARTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaChange:
    """A new state of a replica, at `at` seconds since the run's origin."""

    at: float
    replica: int
    """Index of the server in the order in which servers were listed first."""
    name: str
    """Its name in tables and lines, such as `gpu7:8000`."""
    url: str
    state: ReplicaState
    reason: str = ""
    """Why it does not respond, or what a restart changed; empty if there is nothing to say."""
    engine: str | None = None
    """JSON of its EngineFacts; None unless it responds."""
    not_ready: str | None = None
    """Status of its health page while it takes no requests and its metrics are read, as in `/health: HTTP 503`."""

    @property
    def is_rare(self) -> bool:
        """Whether its metrics are those that a Prometheus server has of it, as often as that scrapes."""
        facts = self.facts if self.engine is not None and '"through": "http' in self.engine else None
        return facts is not None and bool(facts.through)

    @property
    def facts(self) -> EngineFacts | None:
        """What is known about its engine; None if it does not respond, and for damaged JSON."""
        try:
            return None if self.engine is None else from_data(EngineFacts, json.loads(self.engine), strict=False)
        except (ValueError, UsageError, TypeError):
            return None


def facts_text(facts: EngineFacts) -> str:
    """Return the JSON of `ReplicaChange.engine`."""
    return json.dumps(to_data(facts), default=str)
