"""The load of a search changes when a probe ends, without a pause, whenever the answer is there."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from dataclasses import dataclass, field
from typing import Any, cast

from servetop.core.config import RunConfig, StageConfig
from servetop.core.events import Action, Command, Note, Severity
from servetop.core.interfaces.search_state import SearchState
from servetop.core.interfaces.stage_row import planned_row
from servetop.core.tick import ClientTick, LoadGauges
from servetop.loadgen.messages import SenderReport
from servetop.run.loop.plan_progress import PlanProgress
from servetop.run.loop.search_driver import SearchDriver
from servetop.run.loop.stage_plan import Segment
from servetop.run.search.probe_decision import FirstProbe, ProbeDecision
from servetop.run.search.recorded_probes import PROBE, TAKEN_BACK, probe_note
from servetop.run.search.search_evidence import NextProbe, Purpose
from servetop.workload.stages.plan import LoadPhase

FIRST, SECOND = NextProbe(load=4.0, seconds=8.0), NextProbe(load=8.0, seconds=5.0)


@dataclass
class GivenDecisions:
    """Decides as given; waits for `permission` first."""

    decisions: deque[NextProbe | None]
    permission: threading.Event = field(default_factory=threading.Event)
    closed: bool = False
    warnings: tuple[Note, ...] = ()

    def first(self) -> FirstProbe:
        state = SearchState(at=0.0, seconds_left=60.0, load=FIRST.load)
        return FirstProbe(probe=FIRST, text="begins", at=0.0, state=state)

    def stage(self, probe: NextProbe) -> StageConfig:
        return StageConfig(request_rate=probe.load, duration=probe.seconds)

    def decide(self) -> ProbeDecision:
        self.permission.wait()
        found = self.decisions.popleft()
        state = SearchState(at=1.0, seconds_left=50.0, load=None if found is None else found.load)
        return ProbeDecision(next=found, continues=found == FIRST, seen="seen", state=state, warnings=self.warnings)

    def close(self) -> None:
        self.closed = True


@dataclass
class Sent:
    """The starter, its sender, and the recorder of notes."""

    segments: list[Segment] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    states: list[SearchState] = field(default_factory=list)

    @property
    def sender(self) -> Sent:
        return self

    async def start(self, segment: Segment) -> None:
        self.segments.append(segment)

    async def command(self, command: Command) -> None:
        self.commands.append(command)

    def add_note(self, note: Note) -> None:
        self.notes.append(note)

    def add_search_state(self, state: SearchState) -> None:
        self.states.append(state)


class Search:
    """A driver whose reports are made by hand."""

    def __init__(self, *decisions: NextProbe | None, permitted: bool = True, planned: bool = True) -> None:
        config = RunConfig(stages=(StageConfig(request_rate=4.0, duration=8.0),))
        self.decider = GivenDecisions(deque(decisions))
        if permitted:
            self.decider.permission.set()
        self.sent, self.progress = Sent(), PlanProgress(config, first_stage=0)
        anything = cast("Any", self.sent)
        self.driver = SearchDriver(
            cast("Any", self.decider), self.progress, starter=anything, ticks=anything, returns=not planned
        )
        if planned:
            self.driver.begin()
        self.progress.next()

    async def until(self, end: float, *, state: LoadPhase = LoadPhase.RUNNING, begins: float | None = None) -> None:
        """Report the tick that ends at a time, and let the thread decide."""
        started = [] if begins is None else [planned_row(StageConfig(request_rate=1.0), at=begins, index=self.stage)]
        tick = ClientTick(index=round(end * 4) - 1, gauges=LoadGauges(stage=self.stage))
        await self.driver.follow(SenderReport(state=state, tick=tick, stages=tuple(started), in_flight=()))
        pending = {each for each in (self.driver._first, self.driver._decision) if each is not None}
        if pending and self.decider.permission.is_set():
            await asyncio.wait(pending)

    @property
    def stage(self) -> int:
        return len(self.sent.segments)


async def test_the_next_load_begins_when_the_probe_ends() -> None:
    search = Search(SECOND)
    await search.until(1.0, begins=1.0)
    await search.until(8.0)
    await search.until(8.75)
    assert search.sent.segments == []
    await search.until(9.0)
    (segment,) = search.sent.segments
    assert segment.stages == ((1, StageConfig(request_rate=8.0)),)
    assert [(note.text, note.count) for note in search.sent.notes] == [("begins", 0), ("seen", 1)]
    await search.driver.close()
    assert search.decider.closed


async def test_a_load_lasts_while_the_answer_is_late() -> None:
    search = Search(SECOND, permitted=False)
    await search.until(1.0, begins=1.0)
    for end in (8.0, 9.0, 10.0, 11.0):
        await search.until(end)
    assert (search.sent.segments, search.sent.commands) == ([], [])
    search.decider.permission.set()
    await search.until(11.25)
    await search.until(11.5)
    assert len(search.sent.segments) == 1
    await search.driver.close()


async def test_the_same_load_continues_without_a_new_stage() -> None:
    search = Search(FIRST, SECOND)
    await search.until(1.0, begins=1.0)
    for end in (8.0, 9.0, 15.0, 16.0):
        await search.until(end)
    assert search.sent.segments == []
    await search.until(17.0)
    assert len(search.sent.segments) == 1
    await search.driver.close()


async def test_the_end_of_the_search_stops_the_load() -> None:
    search = Search(None)
    await search.until(1.0, begins=1.0)
    await search.until(8.0)
    await search.until(9.0)
    assert [each.action for each in search.sent.commands] == [Action.STOP]
    await search.until(9.25, state=LoadPhase.DRAINING)
    await search.driver.close()


async def test_a_load_that_drains_is_not_followed() -> None:
    search = Search(SECOND)
    await search.until(1.0, begins=1.0)
    for end in (8.0, 9.0):
        await search.until(end, state=LoadPhase.DRAINING)
    assert search.sent.segments == []
    await search.driver.close()


def test_a_row_of_a_stage_has_its_planned_length() -> None:
    progress = PlanProgress(RunConfig(stages=(StageConfig(request_rate=4.0, duration=8.0),)), first_stage=3)
    assert progress.prolong_last() == 3
    assert progress.left[0].stages == ((3, StageConfig(request_rate=4.0)),)
    assert progress.plan.row(planned_row(StageConfig(request_rate=4.0), index=3), max_num_seqs=None).duration == 8.0
    assert progress.add(StageConfig(request_rate=6.0, duration=5.0)) == 4
    assert progress.plan.row(planned_row(StageConfig(request_rate=6.0), index=4), max_num_seqs=None).duration == 5.0


def test_a_confirmation_is_named_in_the_note() -> None:
    assert probe_note("", at=0.0, stage=1, purpose=Purpose.CONFIRM).subject == "confirm"


async def test_a_warning_is_noted_when_the_next_load_begins() -> None:
    search = Search(SECOND)
    search.decider.warnings = (Note(at=7.0, severity=Severity.WARNING, source="search", text="it restarted"),)
    await search.until(1.0, begins=1.0)
    await search.until(8.0)
    await search.until(9.0)
    assert [(note.text, note.at) for note in search.sent.notes] == [
        ("begins", 0.0),
        ("it restarted", 9.0),
        ("seen", 9.0),
    ]
    await search.driver.close()


async def test_a_load_that_is_handed_over_is_replaced_and_taken_back() -> None:
    search = Search(SECOND, planned=False)
    await search.until(1.0)
    assert search.sent.segments == []
    search.driver.take_over()
    for end in (2.0, 2.25):
        await search.until(end)
    (segment,) = search.sent.segments
    assert segment.stages == ((1, StageConfig(request_rate=FIRST.load)),)
    search.driver.take_back(3.0)
    assert not search.driver.active
    for end in (10.0, 11.0):
        await search.until(end)
    assert (len(search.sent.segments), search.sent.commands) == (1, [])
    assert [(note.fact, note.at) for note in search.sent.notes] == [(PROBE, 0.0), (TAKEN_BACK, 3.0)]
    assert [state.load for state in search.sent.states] == [FIRST.load, None]
    search.driver.take_over()
    for end in (12.0, 12.25):
        await search.until(end)
    assert len(search.sent.segments) == 2
    await search.driver.close()


async def test_a_search_that_was_handed_the_load_leaves_it_as_it_is() -> None:
    search = Search(None, planned=False)
    search.driver.take_over()
    for end in (0.5, 0.75):
        await search.until(end)
    await search.until(1.0, begins=1.0)
    for end in (8.0, 9.0):
        await search.until(end)
    assert search.sent.commands == []
    assert [note.fact for note in search.sent.notes] == [PROBE, None, TAKEN_BACK]
    assert not search.driver.active
    await search.driver.close()
