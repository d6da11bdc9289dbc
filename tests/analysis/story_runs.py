"""Small runs, golden recordings, and their stories."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from servetop.analysis.diagnosis.episode_fold import EpisodeFold
from servetop.analysis.diagnosis.observation import Observation
from servetop.analysis.diagnosis.run_record import RunRecord
from servetop.analysis.diagnosis.run_verdict import run_verdict
from servetop.analysis.series.tick_history import TickHistory
from servetop.analysis.story.story import Story, story_of
from servetop.core.clock import ClockAnchor
from servetop.core.config import EngineConfig, RunConfig
from servetop.core.events import EngineSample, RunEnd, StageChange
from servetop.core.histogram import LogHistogram
from servetop.core.interfaces.run_source import EngineFacts, RunHeader
from servetop.core.tick import ClientTick, LoadGauges, Tick
from servetop.recordings.read.reader import RecordingReader

GOLDEN = Path(__file__).parents[1] / "golden"
BLOCKS, SLOTS, LENGTH = 500, 36, 50
"""A server of 500 KV blocks that hold 36 sequences; each request has 50 output tokens."""


def recorded(name: str) -> Story:
    reader = RecordingReader.open(GOLDEN / name)
    try:
        reader.refresh()
        history, fold = TickHistory(reader.ticks()), EpisodeFold()
        fold.update(history, reader.header.engine)
        run = RunRecord(
            header=reader.header, history=history, episodes=fold.episodes, stages=reader.stages(),
            notes=reader.notes(), end=reader.end,
        )  # fmt: skip
        return story_of(run, run_verdict(run))
    finally:
        reader.close()


def ramp(
    *, waiting: Sequence[float], kv: float = 0.5, running: float = 20, failed: int = 0, late: int = 0
) -> list[Tick]:
    """One second per entry of `waiting`, at 12 requests/s, of a server with the given figures while requests wait."""
    ticks, preempted = [], 0.0
    for index in range(4 * len(waiting)):
        queue = waiting[index // 4]
        preempted += 1 if queue and kv > 0.9 else 0
        sample = EngineSample(
            scrape_start=index / 4, scrape_end=index / 4 + 0.2, running=running if queue else 10, waiting=queue,
            kv_usage=kv if queue else 0.3, preemptions_total=preempted, max_num_seqs=64,
        )  # fmt: skip
        wait = 0.05 + queue / 12
        client = ClientTick(
            index=index, due=3, sent=3, ok=3 - failed, errors=failed, output_tokens=3 * LENGTH, prompt_tokens=300,
            gauges=LoadGauges(stage=0, request_rate=12.0, in_flight=int(running + queue)),
            ttft=LogHistogram.of([wait] * 3), ttft_due=LogHistogram.of([wait] * 3),
            itl=LogHistogram.of([0.02] * 150), output_len=LogHistogram.of([LENGTH] * 3),
            slip=LogHistogram.of([0.4] * late + [0.001] * (3 - late)),
        )  # fmt: skip
        ticks.append(Tick(client=client, engine=sample))
    return ticks


FACTS = EngineFacts(name="vllm", title="vLLM", max_num_seqs=64, kv_blocks_total=BLOCKS)


def facts_without(lost: Collection[Observation]) -> EngineFacts:
    """Return what is known of an engine that does not export some values."""
    batch = None if Observation.BATCH_LIMIT in lost else FACTS.max_num_seqs
    blocks = None if Observation.KV_BLOCKS in lost or Observation.KV in lost else FACTS.kv_blocks_total
    return replace(FACTS, max_num_seqs=batch, kv_blocks_total=blocks)


def record_from(
    ticks: list[Tick],
    *,
    goodput: dict[str, float] | None = None,
    facts: EngineFacts = FACTS,
    batch_is_known: bool = True,
    **changes: Any,
) -> RunRecord:
    """Return a run of one stage at 12 requests/s, with its episodes."""
    config = RunConfig(engine=EngineConfig(name="vllm", model="m"), goodput=goodput or {})
    batch = 64 if batch_is_known else None
    stage = StageChange(at=0.0, index=0, label="", request_rate=12.0, max_concurrency=None, max_num_seqs=batch)
    history, fold = TickHistory(ticks), EpisodeFold()
    fold.update(history, facts, stages=[stage])
    run = RunRecord(
        header=RunHeader(config=config, anchor=ClockAnchor(0, 0.0), engine=facts), history=history,
        episodes=fold.episodes, stages=(stage,), end=RunEnd(at=ticks[-1].end, exit_code=0, reason=""),
    )  # fmt: skip
    return replace(run, **changes)


def story_from(ticks: list[Tick], **settings: Any) -> Story:
    """Return the story of such a run."""
    run = record_from(ticks, **settings)
    return story_of(run, run_verdict(run))


QUEUE = [0.0] * 20 + [float(4 * second) for second in range(30)] + [0.0] * 20
