"""The probes of a search: which loads were kept, and until when."""

from __future__ import annotations

import math

from servetop.analysis.cells.attempts import RESUMED
from servetop.core.events import Note, Severity, StageChange
from servetop.core.tick import ClientTick, LoadGauges, Tick
from servetop.run.search.recorded_probes import RecordedProbes, probe_note
from servetop.run.search.search_evidence import Probe, Purpose


def stage(at: float, index: int, rate: float | None, *, users: int | None = None, warmup: bool = False) -> StageChange:
    return StageChange(
        at=at,
        index=index,
        label="",
        request_rate=rate,
        max_concurrency=users,
        max_num_seqs=None,
        warmup=warmup,
    )


def ticks(start: float, end: float, *, loaded: bool = True) -> list[Tick]:
    gauges = LoadGauges(stage=0, request_rate=1.0 if loaded else None)
    return [Tick(client=ClientTick(index=index, gauges=gauges)) for index in range(round(start * 4), round(end * 4))]


def test_a_probe_lasts_until_the_next_load() -> None:
    probes = RecordedProbes(concurrency=False)
    probes.add([stage(0.0, 0, None), stage(1.0, 1, 4.0)], [], ticks(0, 1, loaded=False) + ticks(1, 6))
    assert probes.until(6.0) == [Probe(load=4.0, begin=1.0, end=6.0)]
    note = probe_note("", at=6.0, stage=2, purpose=Purpose.CONFIRM)
    probes.add([stage(6.0, 2, 8.0)], [note], ticks(6, 9))
    assert probes.until(9.0) == [
        Probe(load=4.0, begin=1.0, end=6.0),
        Probe(load=8.0, begin=6.0, end=9.0, purpose=Purpose.CONFIRM),
    ]


def test_a_drain_is_not_part_of_a_probe() -> None:
    probes = RecordedProbes(concurrency=False)
    probes.add([stage(0.0, 0, 4.0)], [], ticks(0, 5) + ticks(5, 20, loaded=False))
    assert probes.until(probes.now) == [Probe(load=4.0, begin=0.0, end=5.0)]
    assert probes.now == 20.0


def test_an_interruption_ends_a_probe() -> None:
    probes = RecordedProbes(concurrency=False)
    seam = Note(at=5.0, severity=Severity.INFO, source=RESUMED, text="")
    probes.add([stage(0.0, 0, 4.0), stage(7.0, 1, 4.0)], [seam], ticks(0, 5) + ticks(7, 9))
    assert [(each.begin, each.end) for each in probes.until(9.0)] == [(0.0, 5.0), (7.0, 9.0)]


def test_a_load_that_begins_when_a_session_does_belongs_to_that_session() -> None:
    probes = RecordedProbes(concurrency=False)
    seam = Note(at=5.0, severity=Severity.INFO, source=RESUMED, text="")
    probes.add([stage(0.0, 0, 4.0), stage(5.0, 1, 4.0)], [seam], ticks(0, 9))
    assert [(each.begin, each.end) for each in probes.until(9.0)] == [(0.0, 5.0), (5.0, 9.0)]


def test_a_load_in_flight_is_one_of_a_closed_loop() -> None:
    probes = RecordedProbes(concurrency=True)
    probes.add([stage(0.0, 0, math.inf, users=8, warmup=True), stage(1.0, 1, math.inf, users=3)], [], ticks(0, 4))
    assert probes.until(4.0) == [Probe(load=3.0, begin=1.0, end=4.0)]


def test_a_changed_load_is_another_probe() -> None:
    probes = RecordedProbes(concurrency=False)
    probes.add([stage(0.0, 0, 4.0), stage(2.0, 0, 6.0)], [], ticks(0, 4))
    assert [each.load for each in probes.until(4.0)] == [4.0, 6.0]


def test_a_probe_in_which_the_server_restarted_is_two() -> None:
    probes = RecordedProbes(concurrency=False)
    probes.add([stage(0.0, 0, 4.0), stage(6.0, 1, 8.0)], [], ticks(0, 9))
    assert probes.until(9.0, restarts=[2.0, 6.0]) == [
        Probe(load=4.0, begin=0.0, end=2.0),
        Probe(load=4.0, begin=2.0, end=6.0, restarts=1),
        Probe(load=8.0, begin=6.0, end=9.0, restarts=2),
    ]
