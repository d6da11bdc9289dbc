"""A search of a simulated engine in virtual time, written tick by tick into a recording as a live one is."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np

from servetop.core.clock import ClockAnchor
from servetop.core.config import RunConfig
from servetop.core.config_values.search_config import MAX_CONCURRENCY, REQUEST_RATE, SearchConfig
from servetop.core.events import Note, RequestRecord, RequestStatus, RunEnd, StageChange
from servetop.core.interfaces.request_in_flight import RequestInFlight
from servetop.core.interfaces.run_source import RunHeader
from servetop.core.interfaces.search_state import SearchState
from servetop.core.tick import TICK_SECONDS, ClientTick, LoadGauges, Tick
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.resume import RunStart, resume_recording
from servetop.recordings.write.tick_transaction import TickTransaction
from servetop.run.search.probe_decision import ProbeDecider, ProbeDecision
from servetop.run.search.search_evidence import NextProbe
from servetop.run.search.search_setup import resumed_search, with_first_load
from servetop.simulator.model.sim_request import SimSequence
from tests.judgement.searched_servers import SearchedCase

_ASK_AHEAD = 1.0
"""Seconds before the end of a load at which the next one is decided, as in a live search."""
_FLIGHTS_EVERY = 4
"""Ticks between two recordings of the requests in flight."""
_BOOT_TICKS = 8
"""Ticks without load while the engine of a resumed search starts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A moment at which a writer dies: after the transaction of a tick, or at a byte within it."""

    tick: int
    within: float | None = None
    """Share of the bytes of the transaction that reached the write-ahead log; None: all of them."""


def search_config(case: SearchedCase, *, budget: float) -> RunConfig:
    """Return the configuration of a search of a case; `budget` in seconds."""
    search = SearchConfig(
        slo=(case.objective.text,),
        over=MAX_CONCURRENCY if case.concurrency else REQUEST_RATE,
        low=1.0 if case.concurrency else 0.1,
        high=1000.0,
        budget=budget,
    )
    return with_first_load(RunConfig(workload=case.base.workload, search=search))


def record_search(path: Path, case: SearchedCase, *, seed: int, budget: float, cuts: Mapping[Path, Cut]) -> None:
    """Record a whole search, and copy the file to each of `cuts` as it is at that moment."""
    config, anchor = search_config(case, budget=budget), ClockAnchor.take()
    recorder = Recorder.create(path, RunHeader(config=config, anchor=anchor))
    RecordedSearch(case, config, recorder, RunStart(anchor=anchor), seed=seed, cuts=cuts).run()


def continue_search(path: Path, case: SearchedCase, *, seed: int) -> None:
    """Continue the search of a recording whose writer died, on an engine that starts again with other arrivals."""
    config = resumed_search(path)
    if not config.stages:
        return
    recorder, start = resume_recording(path, config)
    session = RecordedSearch(case, config, recorder, start, seed=seed)
    session.boot()
    session.run()


class RecordedSearch:
    """One session: the server, the writer of the recording, and what decides on the loads by reading it."""

    def __init__(
        self,
        case: SearchedCase,
        config: RunConfig,
        recorder: Recorder,
        start: RunStart,
        *,
        seed: int,
        cuts: Mapping[Path, Cut] | None = None,
    ) -> None:
        self._server = case.server(seed)
        self._server.now = start.first_tick * TICK_SECONDS
        self._recorder = recorder
        self._decider = ProbeDecider.of(config, recorder.path)
        self._closed = case.concurrency
        self._tick, self._stage, self._first_id = start.first_tick, start.first_stage, start.first_request
        self._cuts = cuts or {}
        self._flying: dict[int, tuple[SimSequence, int]] = {}
        """Requests in flight by number, each with the stage in which it was sent."""
        self._seen = 0
        self._begins: list[StageChange] = []
        self._notes: list[Note] = []
        self._states: list[SearchState] = []

    def boot(self) -> None:
        """Record the time in which the engine starts."""
        for _ in range(_BOOT_TICKS):
            self._recorder.commit(TickTransaction(tick=Tick(client=ClientTick(index=self._tick))))
            self._tick += 1
        self._server.now = self._tick * TICK_SECONDS

    def run(self) -> None:
        """Search to the end, and close the recording."""
        first = self._decider.first()
        probe = first.probe
        self._notes.append(first.note(self._stage))
        self._begin(probe)
        until = self._server.now + probe.seconds
        decision: ProbeDecision | None = None
        while True:
            recorded = self._keep(probe)
            now = self._server.now
            if decision is None and recorded and now >= until - _ASK_AHEAD:
                decision = self._decider.decide()
            if decision is None or now < until:
                continue
            if decision.state is not None:
                self._states.append(decision.state)
            if decision.next is None:
                break
            until = now + decision.next.seconds
            if not decision.continues:
                probe, self._stage = decision.next, self._stage + 1
                self._notes.append(decision.note(self._stage, at=now))
                self._begin(probe)
            decision = None
        self._decider.close()
        self._recorder.commit(TickTransaction(search_states=self._states))
        self._recorder.close(RunEnd(at=self._server.now, exit_code=0, reason=""))

    def _begin(self, probe: NextProbe) -> None:
        load = self._decider.stage(probe)
        self._begins.append(
            StageChange(
                at=self._server.now,
                index=self._stage,
                label="",
                request_rate=math.inf if load.request_rate is None else load.request_rate,
                max_concurrency=load.max_concurrency,
                max_num_seqs=None,
            )
        )

    def _keep(self, probe: NextProbe) -> bool:
        """Keep the load for a tick and record it; return whether the requests in flight were recorded with it."""
        load = self._decider.stage(probe)
        self._server.keep(load.max_concurrency or probe.load, TICK_SECONDS)
        sent = self._server.sent_since(self._seen)
        self._flying.update((number, (seq, self._stage)) for number, seq in enumerate(sent, start=self._seen))
        self._seen += len(sent)
        now = self._server.now
        ended = [number for number, (seq, _) in self._flying.items() if (seq.finished_at or math.inf) <= now]
        requests = [_record(self._first_id + number, *self._flying.pop(number)) for number in ended]
        rate = math.inf if load.request_rate is None else load.request_rate
        gauges = LoadGauges(
            stage=self._stage,
            request_rate=rate,
            max_concurrency=load.max_concurrency,
            in_flight=len(self._flying),
        )
        records = self._tick % _FLIGHTS_EVERY == _FLIGHTS_EVERY - 1
        batch = TickTransaction(
            tick=Tick(client=ClientTick(index=self._tick, gauges=gauges, ok=len(requests), sent=len(sent))),
            requests=requests,
            in_flight=self._in_flight(now) if records else None,
            stages=self._begins,
            notes=self._notes,
            search_states=self._states,
        )
        self._commit(batch)
        self._begins, self._notes, self._states = [], [], []
        self._tick += 1
        return records

    def _in_flight(self, now: float) -> list[RequestInFlight]:
        return [
            RequestInFlight(
                at=now,
                id=self._first_id + number,
                stage=stage,
                due=seq.arrival,
                sent=seq.arrival,
                first_token_at=_until(seq.first_token_at, now),
                prompt_tokens=seq.prompt_tokens,
            )
            for number, (seq, stage) in self._flying.items()
        ]

    def _commit(self, batch: TickTransaction) -> None:
        """Write a tick, and the copies of the file at this moment."""
        now = {target: cut for target, cut in self._cuts.items() if cut.tick == self._tick}
        path = self._recorder.path
        before = (path.read_bytes(), _log_of(path)) if now else (b"", b"")
        self._recorder.commit(batch)
        for target, cut in now.items():
            after = path.read_bytes(), _log_of(path)
            torn = cut.within is not None and after[0] == before[0]  # else a checkpoint was part of it
            target.write_bytes(after[0])
            log = _torn(before[1], after[1], cut.within or 0.0) if torn else after[1]
            target.with_name(f"{target.name}-wal").write_bytes(log)


def cuts_of(seed: int, *, count: int, ticks: int) -> list[Cut]:
    """Draw moments among the first ticks of a search; half of them within a transaction."""
    random = Random(f"cuts {seed}")
    chosen = sorted(random.sample(range(ticks), count))
    return [Cut(tick=tick, within=random.random() if random.random() < 0.5 else None) for tick in chosen]


def remove_recording(path: Path) -> None:
    """Delete a recording with its write-ahead log."""
    for suffix in ("", "-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            path.with_name(path.name + suffix).unlink()


def _log_of(path: Path) -> bytes:
    log = path.with_name(f"{path.name}-wal")
    return log.read_bytes() if log.exists() else b""


def _torn(before: bytes, after: bytes, within: float) -> bytes:
    """Return a log of which a share of the bytes that changed has been written: SQLite writes them in order."""
    size = min(len(before), len(after))
    same = next((at for at in range(0, size, 4096) if before[at : at + 4096] != after[at : at + 4096]), size)
    changed = max(len(after), len(before)) - same
    end = same + round(within * changed)
    return after[:end] + before[end:]


def _until(at: float | None, now: float) -> float | None:
    """Return a time that has come; None for one that has not."""
    return at if at is not None and at <= now else None


def _record(number: int, seq: SimSequence, stage: int) -> RequestRecord:
    first, end = seq.first_token_at, seq.finished_at
    assert first is not None
    assert end is not None
    later = seq.output_tokens - 1
    return RequestRecord(
        id=number,
        stage=stage,
        due=seq.arrival,
        sent=seq.arrival,
        first_token_at=first,
        done_at=end,
        prompt_tokens=seq.prompt_tokens,
        output_tokens=seq.output_tokens,
        status=RequestStatus.OK,
        chunk_times=np.array([first, end] if later else [first]),
        chunk_tokens=np.array([1, later] if later else [1]),
    )
