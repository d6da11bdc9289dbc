"""Segments that begin with the prefix cache in a promised state, at simulated servers."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator
from pathlib import Path

from servetop.analysis.prefix_cache.cache_notes import cache_methods
from servetop.core.clock import ClockAnchor, MonotonicClock
from servetop.core.config import EngineConfig, RunConfig, StageConfig, WorkloadConfig
from servetop.core.events import Command, Note, Severity, StageChange
from servetop.core.interfaces.dialect import Prompt
from servetop.core.interfaces.run_source import EngineFacts, RunHeader
from servetop.loadgen.messages import SenderReport, SenderSetup
from servetop.recordings.write.recorder import Recorder
from servetop.run.loop.engine_session import EngineSession
from servetop.run.loop.segment_start import SegmentStarter, crowding
from servetop.run.loop.stage_plan import FreshStarts, Segment, segments
from servetop.run.loop.tick_recorder import TickRecorder
from servetop.simulator.scheduling.build import sim_spec
from servetop.simulator.serve import SimulatorServer
from servetop.workload.stages.plan import LoadPlan

STAGES = (StageConfig(num_prompts=2), StageConfig(num_prompts=3))
WORKLOAD = WorkloadConfig(input_len=40, cache_hit_rate=0.5, num_prefixes=3)


class Plans:
    """Senders that only keep what they are to send."""

    def __init__(self) -> None:
        self.plans: list[LoadPlan] = []

    async def begin(self, plan: LoadPlan) -> None:
        self.plans.append(plan)

    async def command(self, command: Command) -> None:
        raise NotImplementedError

    async def reports(self) -> AsyncIterator[SenderReport]:
        raise NotImplementedError
        yield

    async def close(self) -> None:
        raise NotImplementedError


class Prepared:
    """What a test sees of the segments that were started at one server."""

    def __init__(self, server: SimulatorServer, plans: Plans) -> None:
        self.server = server
        self.plans = plans.plans
        self.notes: list[Note] = []
        self.stages: list[StageChange] = []


async def start_cells(tmp_path: Path, *, prefix_cache: str, dialect: str = "vllm") -> Prepared:
    """Start each of the two cells and return what was done."""
    spec = sim_spec("llama-2-7b", gpu="a100-40", engine="vllm-current", settings={"time_scale": 0.02})
    server, clock, plans = SimulatorServer(spec, served_name="tiny", dialect=dialect), MonotonicClock(), Plans()
    url = await server.start("127.0.0.1", 0)
    config = RunConfig(
        engine=EngineConfig(name="auto", model="", url=url),
        workload=WORKLOAD,
        stages=STAGES,
        drain_at_stages=True,
        prefix_cache=prefix_cache,
    )
    path = tmp_path / f"{prefix_cache}.servetop"
    recorder = Recorder.create(path, RunHeader(config=config, anchor=ClockAnchor.take()))
    engine = EngineSession(config.engine, clock)
    facts = await engine.start()
    ticks = TickRecorder(recorder, engine, clock=clock, alert=lambda _: None)
    setup = SenderSetup(
        url=url,
        model=facts.model or "",
        workload=WORKLOAD,
        block_size=16,
        origin_ns=clock.origin_ns,
        dialect=engine.handle.engine.endpoints["completions"],
    )
    found = Prepared(server, plans)
    starter = SegmentStarter(config, plans, setup, engine=engine, ticks=ticks)
    with contextlib.closing(recorder.reader()) as reader:
        for segment in segments(STAGES, fresh=FreshStarts.of(config)):
            await play(starter, segment)
        ticks.commit(None)
        found.notes = [note for note in reader.poll().notes if note.source == "cache"]
        found.stages = list(reader.stages())
    await starter.cancel()
    await engine.close()
    server.close()
    return found


async def play(starter: SegmentStarter, segment: Segment) -> None:
    await starter.start(segment)
    async with asyncio.timeout(30):
        while starter.preparing:
            await starter.advance()
            await asyncio.sleep(0.01)


async def test_a_cold_cell_begins_after_a_reset(tmp_path: Path) -> None:
    cells = await start_cells(tmp_path, prefix_cache="cold")
    assert [note.text for note in cells.notes] == ["prefix cache reset (POST /reset_prefix_cache)"] * 2
    assert [(plan.segments[0][0], plan.prompt_salt) for plan in cells.plans] == [(0, None), (1, None)]
    assert [(stage.index, stage.request_rate) for stage in cells.stages] == [(0, None), (1, None)]
    assert cache_methods(cells.notes) == ("reset",)


async def test_an_engine_that_cannot_reset_its_cache_gets_other_prompts_in_each_cell(tmp_path: Path) -> None:
    cells = await start_cells(tmp_path, prefix_cache="cold", dialect="tgi")
    salts = [plan.prompt_salt for plan in cells.plans]
    assert None not in salts
    assert len(set(salts)) == 2
    assert [note.severity for note in cells.notes] == [Severity.INFO] * 2
    assert all("so that none is cached: TGI has no endpoint for it" in note.text for note in cells.notes)
    assert cache_methods(cells.notes) == ("salt",)


async def test_a_warm_cell_begins_with_each_shared_prefix_in_the_cache_and_nothing_else(tmp_path: Path) -> None:
    cells = await start_cells(tmp_path, prefix_cache="warm")
    assert [note.text for note in cells.notes] == [
        "prefix cache reset (POST /reset_prefix_cache)", "prefix cache warmed: 3 shared prefixes of 32 tokens",
    ] * 2  # fmt: skip
    prefix = cells.server.scheduler.prefix
    assert prefix is not None
    assert (prefix.queried_tokens, prefix.hit_tokens) == (2 * 3 * 33, 0)


async def test_a_cache_as_it_is_is_left_alone(tmp_path: Path) -> None:
    cells = await start_cells(tmp_path, prefix_cache="as-is")
    assert (cells.notes, cells.stages) == ([], [])
    assert [[index for index, _ in plan.segments] for plan in cells.plans] == [[0, 1]]


def test_prefixes_that_crowd_out_the_load_are_a_warning() -> None:
    prompts = [Prompt(text="", input_tokens=161, output_tokens=1)] * 6
    facts = EngineFacts(name="vllm", title="vLLM", block_size=16, kv_blocks_total=200)
    assert crowding(prompts, facts) == ""
    assert crowding(prompts * 2, facts) == (
        "the shared prefixes need 120 of 200 KV blocks: the load will evict some of them"
    )
    assert "of 100 KV blocks" in crowding(prompts, dataclasses.replace(facts, replica_urls=("a", "b")))
    assert crowding(prompts * 99, dataclasses.replace(facts, kv_blocks_total=None)) == ""
