"""The settings of a watch, which reads a server's metrics and sends it no request."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchConfig:
    """A watch; a run that has one has no stages, no senders and no requests."""

    duration: float | None = field(default=None, metadata={"unit": "s"})
    """Seconds from the first contact with the server to the end; None until it is stopped."""
    hold: float = field(default=10.0, metadata={"unit": "s"})
    """Seconds in a row for which the condition of a threshold has to fail to count as broken."""
    several: bool = False
    """Whether each server has a row of its own: there are several, or there may be."""
    names: tuple[str, ...] = ()
    """Names of the servers at `url` and `more_urls` of the engine; an empty one stands for the address."""
    file: str | None = None
    """The file that lists the servers, read again when it changes."""
    prometheus: str | None = None
    """The Prometheus server whose instances are the servers, with its selector, queried again from time to time."""
    all_addresses: bool = False
    """Whether each address of a server's name is a server, resolved again from time to time."""
    on_episode: str = ""
    """The command that is run when an overload or an outage of a server begins, and when it ends; empty for none."""
    keep: float | None = field(default=None, metadata={"unit": "s"})
    """Age in seconds from which on data are dropped from the recording; None keeps everything."""
