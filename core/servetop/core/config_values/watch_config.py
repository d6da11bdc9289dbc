"""The settings of a watch, which reads a server's metrics and sends it no request."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchConfig:
    """A watch; a run that has one has no stages, no senders and no requests."""

    duration: float | None = field(default=None, metadata={"unit": "s"})
    """Seconds from the first contact with the server to the end; None until it is stopped."""
