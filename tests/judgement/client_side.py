"""Changes what the client of a virtual run saw, and leaves the engine as it was: networks, other clients' requests."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import Any, cast

import numpy as np

from servetop.core.arrays import FloatArray
from servetop.core.events import RequestRecord, RequestStatus, RunEnd, StageChange
from servetop.core.tick import TICK_SECONDS, ClientTick, Tick
from servetop.simulator.virtual_run.client_tick_fold import ClientTickFold
from servetop.simulator.virtual_run.sent_request import SentRequest
from servetop.simulator.virtual_run.virtual_run import VirtualRun

Seen = tuple[RequestRecord, FloatArray]
"""A request as the client sees it, and the arrival time of each of its tokens."""


def delayed(run: VirtualRun, seconds: float) -> VirtualRun:
    """The client receives everything so many seconds later: a network's round trip, all of it on the way back."""
    return _refolded(run, [(record, times + seconds) for record, times in _all_seen(run)])


def through_link(run: VirtualRun, tokens_per_second: float) -> VirtualRun:
    """All tokens come one after the other over a link that carries so many per second."""
    seen = _all_seen(run)
    offered = np.concatenate([times for _, times in seen])
    order = np.argsort(offered, kind="stable")
    steps = np.arange(offered.size) / tokens_per_second
    arrived = np.empty_like(offered)
    arrived[order] = np.maximum.accumulate(offered[order] - steps) + steps + 1 / tokens_per_second
    parts = np.split(arrived, np.cumsum([times.size for _, times in seen])[:-1])
    return _refolded(run, [(record, times) for (record, _), times in zip(seen, parts, strict=True)])


def attached(run: VirtualRun) -> VirtualRun:
    """The run of a client at a server that it did not start, as every server with a network or others before it is."""
    config = run.header.config
    engine = dataclasses.replace(config.engine, url="http://server:8000")
    facts = run.header.engine
    known = None if facts is None else dataclasses.replace(facts, url=engine.url)
    header = dataclasses.replace(run.header, config=dataclasses.replace(config, engine=engine), engine=known)
    return dataclasses.replace(run, header=header)


def shared_with_others(run: VirtualRun, ours: Collection[int]) -> VirtualRun:
    """Only these requests are the client's; all others are those of somebody else at the same engine."""
    seen = [(record, times) for record, times in _all_seen(run) if record.id in ours]
    share = len(seen) / len(run.records)
    stages = tuple(_scaled(stage, share) for stage in run.stages)
    config = run.header.config
    scaled = tuple(
        dataclasses.replace(
            stage,
            request_rate=_rounded(share * stage.request_rate),
            ramp_from=None if stage.ramp_from is None else _rounded(share * stage.ramp_from),
        )
        for stage in config.stages
    )
    header = dataclasses.replace(run.header, config=dataclasses.replace(config, stages=scaled))
    return _refolded(dataclasses.replace(run, header=header, stages=stages), seen, share=share)


def _scaled(stage: StageChange, share: float) -> StageChange:
    rate = _rounded(share * (stage.request_rate or 0.0))
    begin = None if stage.ramp_from is None else _rounded(share * stage.ramp_from)
    label = f"{rate:g} req/s" if begin is None else f"{begin:g} to {rate:g} req/s"
    return dataclasses.replace(stage, request_rate=rate, ramp_from=begin, label=label)


def _rounded(rate: float) -> float:
    return float(f"{rate:.3g}")


def _all_seen(run: VirtualRun) -> list[Seen]:
    return [(record, _token_times(record)) for record in run.records]


def _token_times(record: RequestRecord) -> FloatArray:
    """The times of all tokens: evenly between the first and the last."""
    if record.first_token_at is None or record.done_at is None or record.status is not RequestStatus.OK:
        return np.empty(0) if record.first_token_at is None else np.array([record.first_token_at])
    return np.linspace(record.first_token_at, record.done_at, max(record.output_tokens, 1))


def _refolded(run: VirtualRun, seen: Iterable[Seen], *, share: float = 1.0) -> VirtualRun:
    deadline = max(record.due for record in run.records) + run.header.config.drain_timeout
    listed = [_ended(record, times, deadline=deadline) for record, times in seen]
    listed.sort(key=lambda each: each[0].done_at or 0.0)
    records = tuple(record for record, _ in listed)
    end = max(record.done_at or 0.0 for record in records)
    ticks = _with_clients(_extended(run.ticks, end), listed, goodput=dict(run.header.config.goodput), share=share)
    last = RunEnd(at=max(end, run.end.at), exit_code=run.end.exit_code, reason=run.end.reason)
    return dataclasses.replace(run, ticks=ticks, records=records, end=last)


def _ended(record: RequestRecord, times: FloatArray, *, deadline: float) -> Seen:
    """The request as it ended at the client, cancelled at the end of the drain timeout."""
    if not times.size or record.status is not RequestStatus.OK:
        return record, times
    late = times[-1] > deadline
    times = times[times <= deadline]
    first = float(times[0]) if times.size else None
    if late:
        cut: dict[str, Any] = {"status": RequestStatus.CANCELLED, "output_tokens": 0, "done_at": deadline}
        cut |= {"chunk_times": np.empty(0), "chunk_tokens": np.empty(0, np.int64)}
        return dataclasses.replace(record, first_token_at=first, **cut), times
    chunks = times[[0, -1]][: record.chunk_times.size]
    return dataclasses.replace(record, first_token_at=first, done_at=float(times[-1]), chunk_times=chunks), times


def _extended(ticks: tuple[Tick, ...], end: float) -> list[Tick]:
    """More ticks until the end, with an idle engine's page of the last one."""
    last, more = ticks[-1], []
    for index in range(last.client.index + 1, int(end / TICK_SECONDS) + 1):
        client = ClientTick(index=index, gauges=last.client.gauges, loop_lag=last.client.loop_lag)
        at = (index + 1) * TICK_SECONDS
        sample = last.engine and dataclasses.replace(last.engine, scrape_start=at, scrape_end=at + 0.001)
        more.append(Tick(client=client, engine=sample, gpus=last.gpus))
    return [*ticks, *more]


def _with_clients(ticks: list[Tick], seen: list[Seen], *, goodput: dict[str, float], share: float) -> tuple[Tick, ...]:
    """The ticks with what the client saw, folded anew; the load's rate is multiplied by `share`."""
    counted: dict[int, list[tuple[str, Any]]] = defaultdict(list)
    for record, times in seen:
        for kind, at in (("due", record.due), ("sent", record.sent), ("done", record.done_at)):
            if at is not None:
                counted[int(at / TICK_SECONDS)].append((kind, record))
        for index in np.unique((times / TICK_SECONDS).astype(np.int64)) if times.size else ():
            counted[int(index)].append(("tokens", (record, times)))
    fold, in_flight, queued, found = ClientTickFold(goodput), 0, 0, []
    for tick in ticks:
        for kind, what in counted[tick.client.index]:
            in_flight += {"sent": 1, "done": -1}.get(kind, 0)
            queued += {"due": 1, "sent": -1}.get(kind, 0)
            _count(fold, kind, what, tick.client.index)
        rate = tick.client.gauges.request_rate
        gauges = dataclasses.replace(
            tick.client.gauges,
            in_flight=in_flight,
            queued=queued if tick.client.gauges.queued else 0,
            request_rate=None if rate is None else share * rate,
        )
        built = fold.build(tick.client.index, gauges=gauges, cpu_seconds=tick.client.cpu_seconds)
        found.append(dataclasses.replace(tick, client=dataclasses.replace(built, loop_lag=tick.client.loop_lag)))
    return tuple(found)


def _count(fold: ClientTickFold, kind: str, what: Any, index: int) -> None:
    """Count one event of a request, or its tokens of a tick."""
    if kind == "due":
        fold.due()
    elif kind == "sent":
        fold.sent(_request(what))
    elif kind == "done":
        fold.ended(what)
    else:
        record, times = what
        now = (times / TICK_SECONDS).astype(np.int64) == index
        if now[0]:
            fold.first_token(_request(record), float(times[0]))
        fold.chunks(int(now.sum()))
        for gap in np.diff(times)[now[1:]]:
            fold.gap(float(gap), 1)


def _request(record: RequestRecord) -> SentRequest:
    """The request of a record, for the fold, which needs its times and prompt alone."""
    sent = record.due if record.sent is None else record.sent
    return SentRequest(cast("Any", record), number=record.id, stage=record.stage, due=record.due, sent=sent)
