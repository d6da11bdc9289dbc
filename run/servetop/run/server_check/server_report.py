"""What a check of a server found out, as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadEvent:
    """One event of a response that carries text, counts or an error, as the load reads it."""

    at: float
    """Seconds since the request was sent."""
    text: str = ""
    tokens: int = 0
    """Tokens that the load counts for it."""
    reasoning: bool = False
    """The text is the model's reasoning, not its answer."""
    output_tokens: int | None = None
    """The server's own count so far; None: this event has none."""
    final: bool = False
    """The end of the stream."""
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointCheck:
    """One request over one endpoint: what was sent, what came back and how the load reads it."""

    endpoint: str
    """The value of `--endpoint`."""
    prompt: str
    """`token ids` or `text`."""
    url: str
    """Where the request went, without a query."""
    changes: tuple[str, ...] = ()
    """What had to be changed before the server accepted it, such as `without ignore_eos`."""
    refusals: tuple[str, ...] = ()
    """The server's errors that led to these changes."""
    sent: Any = None
    """The JSON body."""
    header_names: tuple[str, ...] = ()
    answered: bool
    """The load would count it as completed."""
    status: str
    error: str | None = None
    http_status: int | None = None
    media_type: str = ""
    streamed: bool = False
    """Its text arrived in several events."""
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    token_source: str = ""
    """Who counted the tokens, as in `request.token_source` of a recording."""
    headers_seconds: float | None = None
    first_token_seconds: float | None = None
    total_seconds: float | None = None
    events: tuple[ReadEvent, ...] = ()
    """The first ones, up to a limit."""
    body: str = ""
    """The beginning of the response as received."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelMetrics:
    """What a panel of the dashboard needs from the engine's metrics."""

    panel: str
    found: tuple[str, ...] = ()
    """Fields of EngineSample with a value."""
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsCheck:
    """The engine's metrics after the requests."""

    page: str = ""
    """Where they were read; empty: nowhere."""
    trouble: str = ""
    """Why they could not be read."""
    panels: tuple[PanelMetrics, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerReport:
    """The whole check."""

    servetop: str
    url: str
    engine: str
    """Name of the adapter, as in `--engine`."""
    title: str
    version: str | None = None
    model: str | None = None
    models: tuple[str, ...] = ()
    max_model_len: int | None = None
    endpoints: tuple[EndpointCheck, ...] = ()
    metrics: MetricsCheck = MetricsCheck()
    remarks: tuple[str, ...] = ()
    """What to know before a run, one sentence each."""
    options: tuple[str, ...] = ()
    """Options that a run on this server needs in addition to those given."""

    @property
    def answered(self) -> bool:
        """Whether at least one endpoint completed its request."""
        return any(each.answered for each in self.endpoints)
