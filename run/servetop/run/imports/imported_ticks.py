"""The ticks of an imported run, from its requests."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from servetop.core.events import RequestRecord
from servetop.core.tick import TICK_SECONDS, LoadGauges, Tick
from servetop.recordings.format.request_codec import last_known_at
from servetop.run.imports.imported_result import ImportedLoad
from servetop.simulator.predict.client_requests import ClientRequest
from servetop.simulator.virtual_run.client_tick_fold import ClientTickFold
from servetop.simulator.virtual_run.sent_request import SentRequest


@dataclass(slots=True)
class _TickRequests:
    """The requests that were due, were sent, received chunks or ended in one tick."""

    due: list[RequestRecord] = field(default_factory=list)
    sent: list[RequestRecord] = field(default_factory=list)
    receiving: list[RequestRecord] = field(default_factory=list)
    ended: list[RequestRecord] = field(default_factory=list)


def imported_ticks(requests: Sequence[RequestRecord], load: ImportedLoad) -> Iterator[Tick]:
    """Yield all ticks up to the end of the last request; what only the tool itself could know of its client is absent.

    Requests are of stage 0, and each was sent.
    """
    events = _by_tick(requests)
    fold = ClientTickFold(observed=False)
    totals: Counter[str] = Counter()
    for index in range(max(events) + 1):
        now = events.get(index, _TickRequests())
        _count(fold, now, index)
        totals.update(due=len(now.due), sent=len(now.sent), ended=len(now.ended))
        gauges = LoadGauges(
            stage=0,
            request_rate=load.rate_after(totals["due"] / len(requests)),
            max_concurrency=load.max_concurrency,
            in_flight=totals["sent"] - totals["ended"],
            queued=totals["due"] - totals["sent"],
        )
        yield Tick(client=fold.build(index, gauges=gauges, cpu_seconds=0.0))


def _tick_of(at: float) -> int:
    """Return the number of the tick that contains an instant."""
    return int(at / TICK_SECONDS)


def _by_tick(requests: Sequence[RequestRecord]) -> dict[int, _TickRequests]:
    events: defaultdict[int, _TickRequests] = defaultdict(_TickRequests)
    for each in requests:
        events[_tick_of(each.due)].due.append(each)
        events[_tick_of(_sent(each))].sent.append(each)
        for index in _ticks_of_chunks(each):
            events[index].receiving.append(each)
        events[_tick_of(last_known_at(each))].ended.append(each)
    return events


def _ticks_of_chunks(request: RequestRecord) -> Iterator[int]:
    return map(int, np.unique((request.chunk_times / TICK_SECONDS).astype(np.int64)))


def _count(fold: ClientTickFold, now: _TickRequests, index: int) -> None:
    for _ in now.due:
        fold.due()
    for each in now.sent:
        fold.sent(_sent_request(each))
    for each in now.receiving:
        _count_chunks(fold, each, index)
    for each in now.ended:
        fold.ended(each)


def _count_chunks(fold: ClientTickFold, request: RequestRecord, index: int) -> None:
    """Count the chunks of a request that arrived in a tick; gaps only where the tokens of each chunk are known."""
    times = request.chunk_times
    arrived = (times / TICK_SECONDS).astype(np.int64) == index
    if arrived[0]:
        fold.first_token(_sent_request(request), float(times[0]))
    fold.chunks(int(arrived.sum()))
    if request.chunk_sizes_known:
        for gap in np.diff(times)[arrived[1:]]:
            fold.gap(float(gap), 1)


def _sent_request(request: RequestRecord) -> SentRequest:
    tokens = ClientRequest(prompt_tokens=request.prompt_tokens, output_tokens=request.output_tokens)
    sent = SentRequest(tokens, number=request.id, stage=request.stage, due=request.due, sent=_sent(request))
    sent.limited = sent.sent > sent.due
    return sent


def _sent(request: RequestRecord) -> float:
    return request.due if request.sent is None else request.sent
