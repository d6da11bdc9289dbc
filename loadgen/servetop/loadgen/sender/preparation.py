"""What a sender has ready before it is due: requests that only have to be written, connections that are open."""

from __future__ import annotations

from collections.abc import Callable

from servetop.core.clock import Clock
from servetop.core.interfaces.dialect import Dialect
from servetop.loadgen.messages import SenderSetup
from servetop.loadgen.request.prerender import PrerenderQueue
from servetop.loadgen.request.request_state import RequestState
from servetop.loadgen.sender.partition import Partition
from servetop.loadgen.transport.raw_transport import Transport
from servetop.workload.build import prompts_for
from servetop.workload.datasets.rows import SkippedRows
from servetop.workload.prompts.prompt_source import PromptSource
from servetop.workload.schedule import Schedule
from servetop.workload.stage_run import Due

_FILL_SECONDS = 0.0005
"""Longest stretch of rendering ahead at one heartbeat."""


def prompts_of(setup: SenderSetup, tally: SkippedRows) -> PromptSource:
    """The prompts that a sender takes its part of; the same sequence for every sender of the run."""
    return prompts_for(
        setup.workload,
        (setup.seed, 0),
        max_model_len=setup.max_model_len,
        corpus_ids=setup.corpus_ids,
        tally=tally,
        words=setup.text_prompts,
    )


class Preparation:
    """Renders ahead, and makes the exchanges out of what was rendered."""

    def __init__(self, outbox: PrerenderQueue, share: Partition, dialect: Dialect) -> None:
        self._outbox = outbox
        self._share = share
        self._dialect = dialect

    def exchange(self, due: Due, *, held_back: bool) -> RequestState:
        """The next request, under its number."""
        number = self._share.number()
        request = self._share.request(number, due, self._outbox)
        return RequestState(number, due, request=request, dialect=self._dialect, held_back=held_back)

    def requests(self, clock: Clock, *, between: Callable[[], None]) -> None:
        """At every heartbeat: some more of those that will be due; `between` two of them sends what is due now."""
        if self._share.working:
            self._outbox.fill(clock, seconds=_FILL_SECONDS, between=between)

    def connections(self, transport: Transport, *, schedule: Schedule | None, in_flight: int) -> None:
        """At every heartbeat: some more of those that will be of use soon."""
        self._share.follow()
        if schedule is not None:
            transport.keep_ready(self._share.connections(schedule.connections_wanted(in_flight)))
