"""Who chooses the load of a run, and what a person may do meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from servetop.core.config import RunConfig, StageConfig
from servetop.core.events import Action, Command
from servetop.core.interfaces.search_state import SEARCH_REFUSES
from servetop.core.tick import ClientTick, LoadGauges
from servetop.loadgen.messages import SenderReport
from servetop.run.loop.plan_progress import PlanProgress
from servetop.run.loop.search_control import SearchControl
from servetop.run.outcome import Outcome
from servetop.workload.stages.plan import LoadPhase
from tests.run.search.searches import SEARCH, record

STAGES = (StageConfig(request_rate=8.0, duration=20.0), StageConfig(request_rate=16.0, duration=20.0))
RUN = RunConfig(goodput={"ttft": 0.5}, stages=STAGES)


class Recorded:
    """A recorder and the recorder of ticks, which keep what they are given."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.kept: list[Any] = []

    def set_config(self, config: RunConfig) -> None:
        self.kept.append(config.search)

    def add_note(self, note: object) -> None:
        self.kept.append(note)

    add_search_state = add_note


def control(config: RunConfig, path: Path) -> tuple[SearchControl, Recorded, PlanProgress]:
    recorded, progress = Recorded(path), PlanProgress(config, first_stage=0)
    anything = cast("Any", recorded)
    return SearchControl(config, anything, progress, Outcome(), anything), recorded, progress


def report(at: float = 10.0) -> SenderReport:
    gauges = LoadGauges(stage=0, request_rate=8.0)
    tick = ClientTick(index=round(at * 4) - 1, gauges=gauges)
    return SenderReport(state=LoadPhase.RUNNING, tick=tick, in_flight=())


def refused(found: SearchControl) -> set[Action]:
    return {each for each in Action if found.refusal(Command(id=1, at=1.0, action=each, source="user", value=8.0))}


async def test_a_planned_search_takes_no_command_that_changes_what_it_measures(tmp_path: Path) -> None:
    path = record(tmp_path / "run.servetop", 5.0)
    found, _, _ = control(RunConfig(stages=STAGES[:1], search=SEARCH), path)
    found.begin(cast("Any", None))
    assert found.active
    assert refused(found) == set(Action) - {Action.MARK, Action.STOP, Action.CANCEL}
    assert found.refusal(Command(id=1, at=1.0, action=Action.SET_RATE, source="user")) == SEARCH_REFUSES
    await found.close()


async def test_a_load_is_handed_to_a_search_and_taken_back(tmp_path: Path) -> None:
    path = record(tmp_path / "run.servetop", 5.0)
    found, recorded, progress = control(RUN, path)
    found.begin(cast("Any", None))
    assert (found.active, refused(found)) == (False, set())
    progress.next()
    progress.stage = 0
    starter = cast("Any", None)
    assert found.switch(starter, report(), busy="the run is being stopped") == "the run is being stopped"
    assert found.switch(starter, report(), busy="") == "the search chooses the load; stages left out: 1"
    assert recorded.kept[0].since == 10.0
    assert refused(found) == set(Action) - {Action.MARK, Action.SEARCH, Action.STOP, Action.CANCEL}
    assert found.switch(starter, report(12.0), busy="") == "the load is yours: it stays as it is"
    assert (found.active, refused(found)) == (False, set())
    assert [note.at for note in recorded.kept[1:]] == [12.0]
    progress.stage = 1
    assert found.switch(starter, report(13.0), busy="") == "the search chooses the load"
    assert [each.since for each in recorded.kept if hasattr(each, "since")] == [10.0], "it is the same search"
    await found.close()


async def test_a_search_does_not_continue_with_the_evidence_of_another_batch_size(tmp_path: Path) -> None:
    path = record(tmp_path / "run.servetop", 5.0)
    found, _, progress = control(RUN, path)
    found.batch_changes()
    progress.next()
    starter = cast("Any", None)
    assert found.switch(starter, report(), busy="").startswith("the search chooses the load"), (
        "nothing was searched yet"
    )
    found.switch(starter, report(12.0), busy="")
    found.batch_changes()
    assert found.switch(starter, report(13.0), busy="").startswith("the batch size has changed")
    assert not found.active
    await found.close()


async def test_a_run_without_objectives_keeps_its_load(tmp_path: Path) -> None:
    found, recorded, _ = control(RunConfig(stages=STAGES), tmp_path / "run.servetop")
    assert "--goodput" in found.switch(cast("Any", None), report(), busy="")
    assert (found.active, recorded.kept) == (False, [])
    await found.close()
