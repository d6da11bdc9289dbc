"""The requests of one run as its client saw them, in columns, and the server's times of them where they are known."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from servetop.core.arrays import BoolArray, FloatArray
from servetop.core.events import RequestRecord, RequestStatus


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ServerTimes:
    """What the server measured of the same requests, in their order; seconds, shape (requests,), NaN is unknown."""

    arrived: FloatArray
    """By the server's clock."""
    ended: FloatArray
    """The last byte, by the server's clock."""
    ttft: FloatArray
    tpot: FloatArray
    span: FloatArray
    """First chunk to last chunk."""
    e2el: FloatArray
    prompt: FloatArray
    """Prompt tokens as the server counted them."""

    def where(self, kept: BoolArray) -> ServerTimes:
        """Return the selected requests."""
        return dataclasses.replace(self, **{each.name: getattr(self, each.name)[kept] for each in _fields(self)})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClientRows:
    """Requests in order of sending; seconds and tokens, shape (requests,), NaN is unknown."""

    ok: BoolArray
    sent: FloatArray
    ended: FloatArray
    """The last byte, or when the request was last known."""
    ttft: FloatArray
    tpot: FloatArray
    """As servetop defines it."""
    e2el: FloatArray
    span: FloatArray
    """First chunk to last chunk."""
    gaps: FloatArray
    """Chunks after the first."""
    later: FloatArray
    """Tokens of the chunks after the first; NaN if the chunks' sizes are unknown."""
    prompt: FloatArray
    output: FloatArray
    cached: FloatArray
    duration: float | None = None
    """Seconds by which the tool divided for its throughput; None if it did not say."""
    times_known: bool = True
    """Whether the tool wrote when it sent each request."""
    server: ServerTimes | None = None

    @classmethod
    def of(
        cls, requests: Iterable[RequestRecord], *, duration: float | None = None, times_known: bool = True
    ) -> ClientRows:
        """Build the columns from requests, of which those that were never sent are left out."""
        rows = sorted((each for each in requests if each.sent is not None), key=lambda each: (each.sent, each.id))
        return cls(
            ok=np.array([each.status is RequestStatus.OK for each in rows], bool),
            sent=_column(rows, lambda each: each.sent),
            ended=_column(rows, _ended),
            ttft=_column(rows, lambda each: each.ttft),
            tpot=_column(rows, lambda each: each.tpot),
            e2el=_column(rows, lambda each: each.e2el),
            span=_column(rows, _span),
            gaps=_column(rows, lambda each: max(each.chunk_times.size - 1, 0)),
            later=_column(rows, _later),
            prompt=_column(rows, lambda each: each.prompt_tokens),
            output=_column(rows, lambda each: each.output_tokens),
            cached=_column(rows, lambda each: each.cached_tokens),
            duration=duration,
            times_known=times_known,
        )

    def with_server(self, truth: ClientRows) -> ClientRows:
        """Return these rows with the server's times of the same requests, in the same order."""
        times = ServerTimes(
            arrived=truth.sent,
            ended=truth.ended,
            ttft=truth.ttft,
            tpot=truth.tpot,
            span=truth.span,
            e2el=truth.e2el,
            prompt=truth.prompt,
        )
        return dataclasses.replace(self, server=times)

    def where(self, kept: BoolArray) -> ClientRows:
        """Return the selected requests; the duration of the whole run is not theirs."""
        columns = {
            each.name: getattr(self, each.name)[kept]
            for each in _fields(self)
            if each.name not in ("duration", "times_known", "server")
        }
        server = None if self.server is None else self.server.where(kept)
        return dataclasses.replace(self, **columns, duration=None, server=server)

    @property
    def completed(self) -> ClientRows:
        """The requests that succeeded."""
        return self.where(self.ok)

    @property
    def seconds(self) -> float:
        """From the first request sent to the last byte; 0 without requests."""
        return float(self.ended.max() - self.sent.min()) if self.sent.size else 0.0


def _fields(value: ClientRows | ServerTimes) -> tuple[dataclasses.Field[object], ...]:
    return dataclasses.fields(value)


def _column(rows: Sequence[RequestRecord], read: Callable[[RequestRecord], float | None]) -> FloatArray:
    values = (read(each) for each in rows)
    return np.array([math.nan if value is None else value for value in values], float)


def _ended(request: RequestRecord) -> float | None:
    last = float(request.chunk_times[-1]) if request.chunk_times.size else None
    known = (request.done_at, last, request.first_token_at, request.sent)
    return next((each for each in known if each is not None), None)


def _span(request: RequestRecord) -> float | None:
    times = request.chunk_times
    return float(times[-1] - times[0]) if times.size > 1 else None


def _later(request: RequestRecord) -> float | None:
    if not request.chunk_sizes_known or request.chunk_times.size < 2:
        return None
    return float(request.chunk_tokens[1:].sum())
