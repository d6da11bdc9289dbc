"""Changes of the batch size are found in the notes of restarts, or in the samples of an engine that goes on running."""

from __future__ import annotations

from collections.abc import Sequence

from servetop.analysis.diagnosis.engine_changes import batch_changes, change_text
from servetop.analysis.diagnosis.run_record import RunRecord
from servetop.analysis.series.tick_history import TickHistory
from servetop.core.clock import ClockAnchor
from servetop.core.config import EngineConfig, RunConfig
from servetop.core.events import EngineSample, Note, Severity, StageChange
from servetop.core.interfaces.run_source import EngineFacts, RunHeader
from servetop.core.tick import ClientTick, Tick


def record(sizes: Sequence[float | None] = (), notes: Sequence[str] = (), *, live: bool) -> RunRecord:
    """A run whose load starts at second 1, with a sample for each size, and a note a second from second 2 on."""
    ticks = [
        Tick(client=ClientTick(index=index), engine=EngineSample(scrape_start=0, scrape_end=0, max_num_seqs=size))
        for index, size in enumerate(sizes)
    ]
    facts = EngineFacts(name="vllm", title="vLLM", changes_batch_size_live=live)
    stage = StageChange(at=1.0, index=0, label="", request_rate=1.0, max_concurrency=None, max_num_seqs=None)
    return RunRecord(
        header=RunHeader(config=RunConfig(engine=EngineConfig(name="vllm", model="m")), anchor=ClockAnchor(0, 0.0),
                         engine=facts),
        history=TickHistory(ticks), episodes=(), stages=(stage,),
        notes=[Note(at=2.0 + at, severity=Severity.INFO, source="engine", text=text) for at, text in enumerate(notes)],
    )  # fmt: skip


def text(run: RunRecord) -> str:
    return change_text(run, batch_changes(run))


def test_a_restart_is_told_with_both_sizes() -> None:
    run = record(notes=["max_num_seqs 16 → 8: restarting the engine"], live=False)
    assert [change.at for change in batch_changes(run)] == [2.0]
    assert text(run) == "the engine restarts with another batch size: max_num_seqs 16 → 8"


def test_several_restarts_are_counted_and_an_unknown_size_is_omitted() -> None:
    notes = [f"max_num_seqs {before} → {after}: restarting the engine" for before, after in (("None", 8), (8, 32))]
    assert text(record(notes=notes, live=False)) == (
        "the engine restarts 2 times with another batch size: max_num_seqs 8 → 32"
    )


def test_the_size_of_a_running_engine_is_in_its_samples() -> None:
    run = record(
        [64, 64, 256, 256, 256, None, 320, 320], ["max_num_seqs 64 → 256: changing it while it runs"], live=True
    )
    assert [change.at for change in batch_changes(run)] == [1.75]
    assert text(run) == "the batch size changes: max_num_seqs 256 → 320"


def test_many_sizes_are_shortened() -> None:
    sizes = [size for size in range(8, 80, 8) for _ in range(2)]
    assert text(record([*[8] * 6, *sizes], live=True)) == (
        "the batch size changes 8 times: max_num_seqs 8 → 16 → 24 → … → 64 → 72"
    )


def test_without_a_change_there_is_none() -> None:
    assert batch_changes(record([64] * 8, live=True)) == []
    assert batch_changes(record([64, 64, 32], ["metrics are back"], live=False)) == []
