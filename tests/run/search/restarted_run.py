"""A recording of a search whose server restarted, from plain rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from servetop.core.clock import ClockAnchor
from servetop.core.events import EngineSample, RequestRecord, RequestStatus, RunEnd, StageChange
from servetop.core.interfaces.run_source import RunHeader
from servetop.core.tick import ClientTick, LoadGauges, Tick
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.tick_transaction import TickTransaction
from tests.run.search.searches import config

START = StageChange(at=0.0, index=0, label="", request_rate=4.0, max_concurrency=None, max_num_seqs=None)


def record_restart(path: Path) -> Path:
    """Record 12 s of 4 requests/s to a server that restarts after 8 s; all of its first tokens take 100 ms."""
    recorder = Recorder.create(path, RunHeader(config=config(), anchor=ClockAnchor.take()))
    for index in range(48):
        tokens = 100.0 + index if index < 32 else index - 31.0
        stages = [START] if index == 0 else []
        recorder.commit(TickTransaction(tick=_tick(index, tokens), stages=stages, requests=[_request(index)]))
    recorder.close(RunEnd(at=12.0, exit_code=0, reason=""))
    return path


def _tick(index: int, tokens: float) -> Tick:
    sample = EngineSample(scrape_start=index / 4, scrape_end=index / 4, generation_tokens_total=tokens)
    return Tick(client=ClientTick(index=index, gauges=LoadGauges(stage=0, request_rate=4.0)), engine=sample)


def _request(number: int) -> RequestRecord:
    due = number / 4
    return RequestRecord(
        id=number,
        stage=0,
        due=due,
        sent=due,
        first_token_at=due + 0.1,
        done_at=due + 0.2,
        prompt_tokens=8,
        output_tokens=1,
        status=RequestStatus.OK,
        chunk_times=np.array([due + 0.1]),
        chunk_tokens=np.array([1]),
    )
