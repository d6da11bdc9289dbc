"""Starts the segments of a run, where promised with the prefix cache in a known state."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Mapping, Sequence

from servetop.analysis.prefix_cache.cache_notes import SOURCE, reset_note, salt_note
from servetop.core.clock import MonotonicClock, wall_clock
from servetop.core.config import WARM, RunConfig, WorkloadConfig
from servetop.core.events import Severity, StageChange
from servetop.core.interfaces.dialect import Prompt
from servetop.core.interfaces.run_source import EngineFacts
from servetop.core.tick import TICK_SECONDS
from servetop.engines.dialects.dialect_registry import dialect_for
from servetop.loadgen.messages import SenderSetup
from servetop.loadgen.worker.start_senders import LoadSenders
from servetop.run.loop.engine_session import EngineSession
from servetop.run.loop.sender_setup import setup_for_engine
from servetop.run.loop.stage_plan import Segment
from servetop.run.loop.tick_recorder import TickRecorder
from servetop.workload.stages.plan import LoadPlan, ServedModel
from servetop.workload.stages.stage_draws import DrawSeeds, StageDraws

BEGIN_AHEAD = 0.05
"""Seconds from the start command to the sender until the first due time."""
_SALT_STEP = 100_003
"""Distance between the salts of two runs that start a microsecond apart."""
_SALTS = 1 << 62
_AT_ONCE = 4
"""Warming requests in flight."""


class SegmentStarter:
    """Prepares the cache for a segment in the background, while the run continues to record, and then begins it."""

    def __init__(
        self, config: RunConfig, sender: LoadSenders, setup: SenderSetup, *, engine: EngineSession, ticks: TickRecorder
    ) -> None:
        self._clock = MonotonicClock(setup.origin_ns)
        self._config = config
        self.sender = sender
        self._setup = setup
        self._engine = engine
        self._ticks = ticks
        self._preparation: asyncio.Task[None] | None = None
        self._segment: Segment | None = None
        self._loaded = False
        self._salt: int | None = None
        self._served: ServedModel | None = None
        self._settings = engine.provides.settings
        self._first_salt = round(wall_clock() * 1e6) * _SALT_STEP
        self._seeds = DrawSeeds.of(dataclasses.replace(config, workload=setup.workload))
        self._draws: Mapping[int, StageDraws] = {}
        """Those of the current segment."""

    @property
    def preparing(self) -> bool:
        """Whether a segment waits for the cache."""
        return self._preparation is not None

    async def follow_engine(self) -> None:
        """Send to the model of the engine, if it was started with other settings, from the next segment on."""
        settings = self._engine.provides.settings
        if settings == self._settings:
            return
        self._settings = settings
        setup = self._setup = await setup_for_engine(self._setup, self._engine)
        self._served = ServedModel(
            model=setup.model,
            max_model_len=setup.max_model_len,
            token_ids=setup.token_ids,
            block_size=setup.block_size,
        )

    async def start(self, segment: Segment) -> None:
        """Begin a segment, at once or as soon as `advance` finds the cache prepared."""
        self._segment = segment
        self._draws = self._seeds.plan(segment.stages)
        if segment.fresh:
            self._preparation = asyncio.ensure_future(self._prepare(segment))
        else:
            await self._begin(segment)

    async def advance(self) -> None:
        """Begin the waiting segment if its cache is prepared."""
        if self._preparation is not None and self._preparation.done() and self._segment is not None:
            preparation, self._preparation = self._preparation, None
            preparation.result()
            await self._begin(self._segment)

    async def cancel(self) -> None:
        """Cancel the preparation of a segment, which then does not start."""
        preparation, self._preparation = self._preparation, None
        if preparation is not None:
            preparation.cancel()
            await asyncio.wait({preparation})

    async def _begin(self, segment: Segment) -> None:
        self._loaded = True
        await self.sender.begin(
            LoadPlan(
                begin=self._clock.now() + BEGIN_AHEAD,
                segments=segment.stages,
                draws=self._draws,
                drain_at_stages=self._config.drain_at_stages,
                drain_timeout=self._config.drain_timeout,
                prompt_salt=self._salt,
                served=self._served,
            )
        )

    async def _prepare(self, segment: Segment) -> None:
        index, stage = segment.stages[0]
        warm = self._config.prefix_cache == WARM
        if self._loaded:
            await self._scraped()  # what the load before did belongs to that load
        pause = StageChange(
            at=self._clock.now(),
            index=index,
            label="warming the prefix cache" if warm else "resetting the prefix cache",
            request_rate=None,
            max_concurrency=None,
            max_num_seqs=self._engine.handle.facts.max_num_seqs,
            repeat=stage.repeat,
        )
        self._ticks.add_stage(pause)
        await self._empty(index)
        if warm:
            await self._warm(self._draws[index], self._draws[index].workload or self._setup.workload)
        await self._scraped()  # counters of the load begin here

    async def _scraped(self) -> None:
        """Wait until the engine's counters have been read once more."""
        await self._clock.sleep_until(
            self._clock.now() + max(self._engine.handle.engine.scrape_period, TICK_SECONDS) + TICK_SECONDS
        )

    async def _empty(self, index: int) -> None:
        """Empty the cache, or alter all prompts from now on where that is not possible."""
        handle = self._engine.handle
        reset, reason = handle.engine.cache_reset, await handle.reset_prefix_cache()
        if reset is not None and not reason:
            self._salt = None
            self._ticks.note(Severity.INFO, SOURCE, text=reset_note(reset.path))
            return
        self._salt = (self._first_salt + index) % _SALTS
        severity = Severity.INFO if reset is None else Severity.WARNING
        self._ticks.note(severity, SOURCE, text=salt_note(self._salt, reason))

    async def _warm(self, draws: StageDraws, workload: WorkloadConfig) -> None:
        """Send each prefix that the prompts of a stage share once to each server."""
        prompts = await asyncio.to_thread(self._warming_prompts, draws, workload)
        if warning := crowding(prompts, self._engine.handle.facts):
            self._ticks.note(Severity.WARNING, SOURCE, text=warning)
        limit = asyncio.Semaphore(_AT_ONCE)
        reasons = await asyncio.gather(*(self._send(prompt, limit, workload) for prompt in prompts))
        if reason := next(filter(None, reasons), ""):
            text = f"prefix cache not warm: {sum(map(bool, reasons))} of {len(prompts)} prefixes failed: {reason}"
            self._ticks.note(Severity.WARNING, SOURCE, text=text)
            return
        longest = max((prompt.input_tokens - 1 for prompt in prompts), default=0)
        count = f"{len(prompts)} shared prefix{'es' if len(prompts) != 1 else ''}"
        self._ticks.note(Severity.INFO, SOURCE, text=f"prefix cache warmed: {count} of {longest} tokens")

    async def _send(self, prompt: Prompt, limit: asyncio.Semaphore, workload: WorkloadConfig) -> str:
        dialect = dialect_for(self._setup.dialect, model=self._setup.model, continuous_usage=False)
        body = json.loads(dialect.body(prompt, dataclasses.replace(workload, stream=False)))
        async with limit:
            return await self._engine.handle.post(dialect.path, body, timeout=workload.timeout)

    def _warming_prompts(self, draws: StageDraws, workload: WorkloadConfig) -> list[Prompt]:
        from servetop.loadgen.request.prerender import engine_traits
        from servetop.workload.prompts.prompt_salt import salted
        from servetop.workload.warming_prompts import warming_prompts

        setup, salt = self._setup, draws.salt if self._salt is None else self._salt
        traits = engine_traits(setup)
        prompts = warming_prompts(workload, draws.prompts, engine=traits, max_model_len=setup.max_model_len)
        return prompts if salt is None else [salted(prompt, salt, setup.token_ids) for prompt in prompts]


def crowding(prompts: Sequence[Prompt], facts: EngineFacts) -> str:
    """Return a warning if the shared prefixes leave less than half of a KV cache to the load; else empty."""
    if facts.kv_blocks_total is None or not facts.block_size:
        return ""
    needed = sum(prompt.input_tokens // facts.block_size for prompt in prompts)
    blocks = facts.kv_blocks_total // max(1, len(facts.replica_urls))
    if needed <= blocks / 2:
        return ""
    return f"the shared prefixes need {needed:,} of {blocks:,} KV blocks: the load will evict some of them"
