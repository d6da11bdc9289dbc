"""A recording in which every column of requests has different values, unknown ones too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from servetop.core.clock import ClockAnchor
from servetop.core.config import RunConfig
from servetop.core.events import RequestRecord, RequestStatus, RunEnd, TokenSource
from servetop.core.interfaces.run_source import EngineFacts, RunHeader
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.tick_transaction import TickTransaction

_STATUSES = (RequestStatus.OK, RequestStatus.OK, *RequestStatus)
_SOURCES = (*TokenSource, TokenSource.USAGE)
_TEXTS = (None, 'café, "quoted"\nline', "x")


def record_odd_requests(path: Path, count: int) -> Path:
    """Record requests: some never sent, some without a token, some with several tokens in a chunk."""
    recorder = Recorder.create(
        path,
        RunHeader(config=RunConfig(), anchor=ClockAnchor.take(), engine=EngineFacts(name="sim", title="simulator")),
    )
    recorder.commit(TickTransaction(requests=[_request(number) for number in range(count)]))
    recorder.close(RunEnd(at=count / 64, exit_code=0, reason=""))
    return path


def _request(number: int) -> RequestRecord:
    due, sent = number / 64, None if number % 11 == 0 else number / 64 + 0.001
    chunks = 0 if sent is None or number % 7 == 0 else 1 + number % 5
    times = due + 0.25 + np.arange(chunks) / 8
    tokens = np.full(chunks, (1, 3, 300)[number % 3], dtype=np.int64)
    first = None if sent is None or not chunks else float(times[0])
    return RequestRecord(
        id=number, due=due, sent=sent, stage=number % 2, chunk_times=times, chunk_tokens=tokens, first_token_at=first,
        done_at=None if number % 13 == 0 else due + 2.0, headers_at=_sometimes(number, 3, due + 0.125),
        prompt_tokens=number % 1000, output_tokens=int(tokens.sum()), cached_tokens=_sometimes(number, 4, number),
        status=_STATUSES[number % len(_STATUSES)], error=_TEXTS[number % 3], http_status=_sometimes(number, 5, 503),
        worker=number % 4, token_source=_SOURCES[number % len(_SOURCES)], model=_TEXTS[number % 2],
        conversation=_sometimes(number, 6, number - 1), turn=_sometimes(number, 6, 2), replica=_sometimes(number, 3, 1),
        first_output_at=None if number % 17 else first, reasoning_tokens=_sometimes(number, 17, 1),
        required_tokens=_sometimes(number, 2, 5), server_queue=_sometimes(number, 3, 0.5),
        server_prefill=_sometimes(number, 4, 0.25), server_decode=_sometimes(number, 5, 0.125),
    )  # fmt: skip


def _sometimes(number: int, every: int, value: Any) -> Any:
    """Return the value for one request of a few, else None."""
    return value if number % every == 0 else None
