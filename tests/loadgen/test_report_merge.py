"""Reports of several senders are merged as if one sender had done all the work."""

from collections.abc import Sequence

import pytest

from servetop.core.events import Action, Command, Note, Severity, StageChange
from servetop.core.interfaces.request_in_flight import MOST_IN_FLIGHT, RequestInFlight
from servetop.core.tick import ClientTick, LoadGauges
from servetop.loadgen.messages import SenderReport
from servetop.loadgen.worker.report_merge import (
    ReplyMerger,
    merge_in_flight,
    merge_notes,
    merge_ticks,
    new_stages,
    slowest_phase,
)
from servetop.workload.stages.plan import LoadPhase


def report(
    *,
    gauges: LoadGauges | None = None,
    notes: Sequence[str] = (),
    stages: Sequence[int] = (),
    reply: str | None = None,
    count: int | None = None,
    action: Action = Action.SET_RATE,
    ok: int = 0,
    in_flight: Sequence[float] | None = None,
) -> SenderReport:
    return SenderReport(
        state=LoadPhase.RUNNING,
        tick=ClientTick(index=4, gauges=gauges or LoadGauges(), ok=ok),
        in_flight=None
        if in_flight is None
        else tuple(RequestInFlight(at=9.0, id=0, stage=0, due=due, prompt_tokens=1) for due in in_flight),
        notes=tuple(Note(at=1.0, severity=Severity.INFO, source="load", text=text) for text in notes),
        stages=tuple(
            StageChange(at=1.0, index=index, label="", request_rate=1.0, max_concurrency=None, max_num_seqs=None)
            for index in stages
        ),
        reply_counts={} if count is None else {1: count},
        replies=() if reply is None else (Command(id=1, at=0.0, action=action, reply=reply),),
    )


def test_gauges_and_counts_are_added_and_lost_requests_are_errors() -> None:
    working = LoadGauges(stage=2, request_rate=5.0, max_concurrency=3, in_flight=2, queued=1, paused=True)
    standby = LoadGauges(stage=1, max_concurrency=0)
    tick = merge_ticks({0: report(gauges=working, ok=4), 1: report(gauges=standby, ok=1)}, lost=2)
    assert tick.gauges == LoadGauges(
        stage=2, request_rate=5.0, max_concurrency=3, in_flight=2, queued=1, holding=False, paused=True
    )
    assert (tick.ok, tick.errors) == (5, 2)


def test_a_note_of_several_senders_is_given_once_and_one_of_a_single_sender_names_it() -> None:
    notes = merge_notes({0: report(notes=["a", "b"]), 3: report(notes=["b", "c"])})
    assert [note.text for note in notes] == ["sender 0: a", "b", "sender 3: c"]


def test_the_requests_in_flight_of_all_senders_are_in_order_of_their_due_times() -> None:
    merged = merge_in_flight({0: report(in_flight=[1.0, 3.0]), 1: report(in_flight=[2.0]), 2: report()})
    assert merged is not None
    assert [each.due for each in merged] == [1.0, 2.0, 3.0]
    many = merge_in_flight({0: report(in_flight=[5.0] * MOST_IN_FLIGHT), 1: report(in_flight=[4.0, 6.0])})
    assert many is not None
    assert (len(many), many[0].due, many[-1].due) == (MOST_IN_FLIGHT, 5.0, 6.0)
    assert merge_in_flight({0: report(), 1: report()}) is None


def test_each_stage_is_reported_once() -> None:
    reported: set[int] = {0}
    found = new_stages({0: report(stages=[0, 1]), 1: report(stages=[1, 2])}, reported)
    assert [stage.index for stage in found] == [1, 2]
    assert reported == {0, 1, 2}


@pytest.mark.parametrize(
    ("phases", "slowest"),
    [
        ([LoadPhase.FINISHED, LoadPhase.DRAINING], LoadPhase.DRAINING),
        ([LoadPhase.RUNNING, LoadPhase.DRAINING], LoadPhase.RUNNING),
        ([], LoadPhase.FINISHED),
    ],
)
def test_the_load_is_as_far_as_its_slowest_sender(phases: list[LoadPhase], slowest: LoadPhase) -> None:
    assert slowest_phase(phases) is slowest


@pytest.mark.parametrize(
    ("action", "counts", "merged"),
    [
        (Action.CANCEL, (1, 0), "1 request cancelled"),
        (Action.CANCEL, (1, 1), "2 requests cancelled"),
        (Action.CANCEL, (1204, 1), "1,205 requests cancelled"),
        (Action.STOP, (0, 1), "no further requests are sent, waiting for 1 request in flight"),
    ],
)
def test_merged_replies_have_the_sum_of_their_counts(action: Action, counts: tuple[int, int], merged: str) -> None:
    merger = ReplyMerger()
    merger.add(
        {
            worker: report(reply=f"sender {worker} of 7 requests", count=count, action=action)
            for worker, count in enumerate(counts)
        }
    )
    (reply,) = merger.complete(alive={0, 1}, playing={0, 1})
    assert reply.reply == merged


def test_replies_are_merged_when_all_living_senders_have_replied() -> None:
    merger = ReplyMerger()
    merger.add({0: report(reply="cancelled", count=4, action=Action.CANCEL)})
    assert list(merger.complete(alive={0, 1}, playing={0, 1})) == []
    merger.add({1: report(reply="cancelled", count=3, action=Action.CANCEL)})
    (reply,) = merger.complete(alive={0, 1}, playing={0, 1})
    assert reply.reply == "7 requests cancelled"
    assert list(merger.complete(alive={0, 1}, playing={0, 1})) == []


def test_the_reply_of_a_sender_that_takes_part_is_preferred() -> None:
    merger = ReplyMerger()
    merger.add({0: report(reply="no stage is running"), 1: report(reply="sending 5 requests/s")})
    (reply,) = merger.complete(alive={0, 1}, playing={1})
    assert reply.reply == "sending 5 requests/s"
