"""What a sender pool knows of each of its senders, and what is lost if one dies."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from servetop.core.events import RequestRecord, RequestStatus
from servetop.core.text.counted import counted
from servetop.loadgen.messages import SenderReport, StartedRequest
from servetop.loadgen.worker.sender_handle import SenderHandle

LOST = "lost because its sender process died"
"""Error of a request that was in flight."""


@dataclass(eq=False)
class SenderState:
    """One sender of a pool, as known from its reports."""

    worker: int
    process: SenderHandle
    reports: deque[SenderReport] = field(default_factory=deque)
    """Reports that have not been merged yet."""
    has_reported: bool = False
    alive: bool = True
    playing: bool = False
    """It has a part in the current subplan."""
    in_flight: dict[int, StartedRequest] = field(default_factory=dict)
    """Requests that were started and not reported as ended, by number, including queued ones."""
    next_number: int = 0
    started_per_tick: deque[int] = field(default_factory=lambda: deque([0], maxlen=8))
    """Requests started in each tick of the last two seconds."""

    def add(self, report: SenderReport) -> None:
        """Add a report that has just arrived."""
        self.has_reported = True
        self.reports.append(report)
        self.in_flight.update((request.number, request) for request in report.started)
        for record in report.records:
            self.in_flight.pop(record.id, None)
        self.next_number = report.next_number
        self.started_per_tick.append(len(report.started))

    def take_lost(self) -> list[RequestRecord]:
        """Return records of the requests in flight, after the sender has died."""
        lost = [_lost_record(request, worker=self.worker) for request in self.in_flight.values()]
        self.in_flight.clear()
        return lost


def lost_text(lost: Sequence[RequestRecord]) -> str:
    """Describe what the death of a sender cost, as far as its last report shows."""
    requests = f"{counted(len(lost), 'request')} in flight {'is' if len(lost) == 1 else 'are'} lost"
    text = f"{requests}, and those started since its last report"
    return f"{text}; its conversations end" if any(each.turn is not None for each in lost) else text


def _lost_record(request: StartedRequest, *, worker: int) -> RequestRecord:
    """Return the record of a request whose sender died: its due time is known, its outcome is not."""
    return RequestRecord(
        id=request.number,
        stage=request.stage,
        due=request.due,
        prompt_tokens=0,
        status=RequestStatus.ERROR,
        error=LOST,
        worker=worker,
        conversation=request.conversation,
        turn=request.turn,
        chunk_times=np.empty(0),
        chunk_tokens=np.empty(0, dtype=np.int64),
    )
