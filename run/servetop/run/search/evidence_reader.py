"""Reads the evidence of a search from its recording, which may be growing: each row is read once."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from servetop.analysis.confounding.server_restarts import ServerRestarts
from servetop.analysis.failure_reasons import FAILED
from servetop.core.arrays import FloatArray, IntArray
from servetop.core.chunk_codec import chunk_sizes_known
from servetop.core.events import RequestStatus
from servetop.core.interfaces.request_in_flight import RequestInFlight
from servetop.core.tick import Tick
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.read.request_chunks import Chunks
from servetop.run.search.other_requests import OtherRequests
from servetop.run.search.recorded_probes import RecordedProbes
from servetop.run.search.request_samples import RequestTimes, Samples, request_samples
from servetop.run.search.search_evidence import Evidence, LoadObjective, Probe

_TIMES = ("due", "sent", "first_token_at", "done_at", "first_output_at", "reasoning_tokens", "output_tokens")
_COLUMNS = ("seq", "id", "status", "token_source", "chunk_times", "chunk_tokens", *_TIMES)
_DISPUTED = "disputed"
_STALE = 1.5
"""Seconds after which rows of requests in flight no longer tell the present."""


class EvidenceReader:
    """The evidence of one recording; `read` returns all of it, and reads only what is new."""

    def __init__(
        self,
        reader: RecordingReader,
        objectives: Sequence[LoadObjective],
        *,
        goodput: Mapping[str, float],
        concurrency: bool = False,
        since: float = 0.0,
    ) -> None:
        self._reader = reader
        self._objectives = objectives
        self._goodput = goodput
        self._probes = RecordedProbes(concurrency=concurrency, since=since)
        engine = reader.header.config.engine
        self._restarts = ServerRestarts(managed=engine.url is None, replicas=bool(engine.more_urls))
        self._others = OtherRequests()
        self._seq = 0
        self._ids: IntArray = np.empty(0, dtype=np.int64)
        self._ended = _nothing(len(objectives))
        self.ticks: list[Tick] = []
        """Those that the last call of `read` found."""

    def read(self) -> Evidence:
        """Return the evidence as of the newest rows of requests in flight."""
        flying = self._reader.in_flight()  # before the ended requests: one that ends meanwhile is in both
        update = self._reader.poll()
        self.ticks = list(update.ticks)
        self._probes.add(update.stages, update.notes, update.ticks)
        self._restarts.add(update.ticks, update.replica_samples, update.notes, update.engine_series)
        self._others.add(update.ticks, update.notes)
        self._add_ended()
        now = self._probes.now
        flying = [each for each in flying if now - each.at < _STALE]
        now = flying[0].at if flying else now
        known = set(self._ids.tolist())
        rest = self._in_flight([each for each in flying if each.id not in known], at=now)
        hidden = self._hidden(flying, among=self._ended, at=now)
        restarts = self._restarts.times
        probes = self._probes.until(now, restarts=restarts)
        evidence = _joined([self._ended, rest, hidden], probes, restarts=restarts)
        in_flight = rest[0].size + hidden[0].size
        limits = tuple(math.nan if each.limit is None else each.limit for each in self._objectives)
        decided = tuple(each.decided for each in self._objectives)
        return replace(evidence, limits=limits, decided=decided, others=self._others.share(in_flight=in_flight))

    @property
    def now(self) -> float:
        """The end of the last tick that was read."""
        return self._probes.now

    def _add_ended(self) -> None:
        rows = list(self._reader.request_rows(_COLUMNS, where="seq > ?", parameters=(self._seq,)))
        if not rows:
            return
        columns: dict[str, Any] = dict(zip(_COLUMNS, zip(*rows, strict=True), strict=True))
        self._seq = max(columns["seq"])
        ids = np.array([-1 if each is None else each for each in columns["id"]], dtype=np.int64)
        times = {name: np.array(columns[name], dtype=np.float64) for name in _TIMES}
        requests = _ended_times(times, columns)
        samples = request_samples(requests, self._objectives, goodput=self._goodput)
        self._ids = np.concatenate((self._ids, ids))
        self._others.add_ended(requests.at, times["output_tokens"])
        part = _part(times["due"], requests.at, samples)
        self._ended = _concatenated([self._ended, part])

    def _in_flight(self, requests: Sequence[RequestInFlight], *, at: float) -> _Part:
        sent, first = (
            np.array([getattr(each, name) for each in requests], dtype=np.float64)
            for name in ("sent", "first_token_at")
        )
        none = np.zeros(sent.shape, dtype=np.bool_)
        times = RequestTimes(
            at=np.full(sent.shape, at),
            sent=sent,
            first_token_at=first,
            first_output_at=first,
            later_tokens=np.full(sent.shape, np.nan),
            ok=none,
            failed=none,
        )
        due = np.array([each.due for each in requests], dtype=np.float64)
        samples = request_samples(times, self._objectives, goodput=self._goodput)
        return _part(due, np.full(sent.shape, np.nan), samples)

    def _hidden(self, flying: Sequence[RequestInFlight], *, among: _Part, at: float) -> _Part:
        """Return requests in flight that are beyond the number that is recorded: only when they were due is known."""
        count = max((tick.client.gauges.in_flight for tick in self.ticks[-1:]), default=0) - len(flying)
        if count <= 0 or not flying:
            return _nothing(len(self._objectives))
        first = min(each.id for each in flying)
        missing = np.setdiff1d(np.arange(first), self._ids)[-count:].astype(np.float64)
        ids = np.concatenate((self._ids, [first])).astype(np.float64)
        dues = np.concatenate((among[0], [next(each.due for each in flying if each.id == first)]))
        order = np.argsort(ids)
        due = np.minimum(np.interp(missing, ids[order], dues[order]), at)
        nothing, unknown = np.zeros(due.shape), np.full(due.shape, np.nan)
        return _part(due, np.full(due.shape, np.nan), [(nothing, nothing, nothing, unknown) for _ in self._objectives])


_Part = tuple[FloatArray, ...]
"""Due and end of some requests, then counted and missed samples of each objective, their sum and level; shape
(requests,)."""


def _part(due: FloatArray, done: FloatArray, samples: Sequence[Samples]) -> _Part:
    return due, done, *(each for of_one in samples for each in of_one)


def _nothing(objectives: int) -> _Part:
    return tuple(np.empty(0) for _ in range(2 + 4 * objectives))


def _concatenated(parts: Sequence[_Part]) -> _Part:
    return tuple(np.concatenate(arrays) for arrays in zip(*parts, strict=True))


def _joined(parts: Sequence[_Part], probes: Sequence[Probe], *, restarts: Sequence[float]) -> Evidence:
    earlier = tuple(each for each in probes if each.restarts < len(restarts))
    due, done, *samples = _concatenated(parts)
    order = np.argsort(due, kind="stable")
    counted, missed, sums, levels = (tuple(each[order] for each in samples[first::4]) for first in range(4))
    return Evidence(
        probes=tuple(probes[len(earlier) :]),
        due=due[order],
        done=done[order],
        counted=counted,
        missed=missed,
        sums=sums,
        levels=levels,
        earlier=earlier,
        restarted_at=restarts[-1] if earlier else None,
    )


def _ended_times(times: Mapping[str, FloatArray], columns: Mapping[str, Any]) -> RequestTimes:
    chunks = Chunks.of(columns["chunk_times"], columns["chunk_tokens"])
    statuses = columns["status"]
    sized = chunk_sizes_known(times["output_tokens"], chunks.totals)
    sized = np.asarray(sized) | np.array([source == _DISPUTED for source in columns["token_source"]])
    ended = times["done_at"]
    for earlier in ("first_token_at", "sent", "due"):
        ended = np.where(np.isnan(ended), times[earlier], ended)
    reasoned = times["reasoning_tokens"] > 0
    return RequestTimes(
        at=ended,
        sent=times["sent"],
        first_token_at=times["first_token_at"],
        first_output_at=np.where(reasoned, times["first_output_at"], times["first_token_at"]),
        later_tokens=np.where(sized, times["output_tokens"] - chunks.first_tokens, np.nan),
        ok=np.array([status == RequestStatus.OK for status in statuses], dtype=np.bool_),
        failed=np.array([status in FAILED for status in statuses], dtype=np.bool_),
        chunks=chunks,
    )
