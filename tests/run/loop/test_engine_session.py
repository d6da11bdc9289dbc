"""The engine of a run, through its restarts."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import cast

import pytest

from servetop.core.clock import MonotonicClock
from servetop.core.config import EngineConfig
from servetop.core.events import EngineSample, Note, Severity
from servetop.core.interfaces.series_scrape import SeriesScrape
from servetop.run.loop.engine_session import EngineSession
from servetop.run.loop.stage_plan import EngineNeeds
from tests.engines.stand_in_nvml import SlowToFree
from tests.simulator import server_process

STAND_IN = Path(__file__).parents[2] / "engines" / "stand_in_engine.py"


async def started(clock: MonotonicClock) -> EngineSession:
    """The stand-in for vLLM with batch size 4."""
    config = EngineConfig(name="vllm", model="some/model", command=(sys.executable, str(STAND_IN)))
    engine = EngineSession(config, clock)
    await engine.start(EngineNeeds(max_num_seqs=4))
    return engine


async def first_samples(engine: EngineSession, *, count: int) -> tuple[list[EngineSample], list[Note]]:
    """The samples of a started engine until there are `count`, with the notes until then."""
    samples: list[EngineSample] = []
    notes: list[Note] = []
    async with asyncio.timeout(60):
        while len(samples) < count:
            update = engine.take_update()
            samples += update.samples
            notes += update.notes
            await asyncio.sleep(0.01)
    return samples, notes


async def test_the_counters_are_scraped_a_last_time_before_a_restart() -> None:
    clock = MonotonicClock()
    engine = await started(clock)
    try:
        requested = clock.now()
        facts = await engine.change(EngineNeeds(max_num_seqs=8))
        news = engine.take_update()
    finally:
        await engine.close()
    assert facts.max_num_seqs == 8
    _, again = [line.at for line in news.log_lines if line.text.startswith("api key is")]
    assert [sample for sample in news.samples if requested <= sample.scrape_start < sample.scrape_end <= again]


async def test_after_a_quick_restart_the_old_engines_last_counters_come_before_the_new_ones_first() -> None:
    clock = MonotonicClock()
    engine = await started(clock)
    try:
        await engine.change(EngineNeeds(max_num_seqs=8))
        restarted = clock.now()
        async with asyncio.timeout(60):
            while (newest := engine.newest_sample()) is None or newest.scrape_end < restarted:
                await asyncio.sleep(0.01)
        starts = [sample.scrape_start for sample in engine.take_update().samples]
    finally:
        await engine.close()
    assert len(starts) >= 2
    assert starts == sorted(starts)


@pytest.mark.parametrize(
    ("readings", "limit", "words"), [(2, 60.0, []), (10**9, 0.3, ["6.0 GiB of its GPU memory is still in use"])]
)
async def test_leftover_gpu_memory_is_noted(
    readings: int, limit: float, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    card = SlowToFree(os.getpid(), readings=readings)
    monkeypatch.setitem(sys.modules, "pynvml", cast("ModuleType", card))
    monkeypatch.setattr("servetop.run.loop.engine_session.RELEASE_SECONDS", limit)
    clock = MonotonicClock()
    engine = EngineSession(
        EngineConfig(name="vllm", model="some/model", command=(sys.executable, str(STAND_IN))), clock
    )
    try:
        card.pid = (await engine.start(EngineNeeds(max_num_seqs=4))).pid or 0
        async with asyncio.timeout(60):
            while not (gpus := engine.take_update().gpus) or gpus[0].engine_memory is None:
                await asyncio.sleep(0.01)
    finally:
        await engine.close()
    reported = [note.text for note in engine.take_update().notes if note.severity is Severity.ERROR]
    assert [text.partition("but ")[2].partition(":")[0] for text in reported] == words


async def test_the_metrics_caveat_is_noted_once_per_run() -> None:
    clock = MonotonicClock()
    process, url = server_process.start("--dialect", "tgi")
    engine = EngineSession(EngineConfig(name="auto", model="", url=url), clock)
    try:
        for _ in range(2):
            await engine.start()
            await engine.stop()
        notes = engine.take_update().notes
    finally:
        await engine.close()
        server_process.stop(process)
    assert [note.text.partition(" counts tokens")[0] for note in notes if note.source == "metrics"] == ["TGI"]


async def test_disabled_metrics_are_not_reported_as_back_at_the_end() -> None:
    clock = MonotonicClock()
    process, url = server_process.start("--dialect", "sglang", "--no-metrics")
    engine = EngineSession(EngineConfig(name="auto", model="", url=url), clock)
    notes: list[Note] = []
    try:
        await engine.start()
        deadline = clock.now() + 10
        while not (warnings := [note for note in notes if note.severity is Severity.WARNING]):
            assert clock.now() < deadline
            await clock.sleep_until(clock.now() + 0.02)
            notes += engine.take_update().notes
    finally:
        await engine.close()
        server_process.stop(process)
    assert "start SGLang with --enable-metrics" in warnings[0].text
    assert engine.take_update().notes == []


async def test_an_invalid_metric_is_ignored_and_noted_once() -> None:
    command = (sys.executable, str(STAND_IN), "--nonsense-from", "3")
    engine = EngineSession(EngineConfig(name="vllm", model="some/model", command=command), MonotonicClock())
    await engine.start(EngineNeeds(max_num_seqs=4))
    try:
        samples, notes = await first_samples(engine, count=6)
    finally:
        await engine.close()
    (note,) = [note for note in notes if "running" in note.text]
    assert (note.severity, note.source) == (Severity.WARNING, "metrics")
    assert note.text == "no usable value of running: missing, negative, NaN or above 1e+18"
    assert samples[0].running is not None
    assert samples[-1].running is None


async def test_metrics_that_an_idle_engine_has_not_exported_yet_are_not_lost() -> None:
    process, url = server_process.start("--dialect", "tgi")
    engine = EngineSession(EngineConfig(name="auto", model="", url=url), MonotonicClock())
    try:
        facts = await engine.start()
        samples, notes = await first_samples(engine, count=3)
    finally:
        await engine.close()
        server_process.stop(process)
    assert "running" not in facts.not_exported
    assert samples[0].running is None
    assert [note.text for note in notes if note.severity is not Severity.INFO] == []


async def test_the_series_of_the_engine_page_come_once_a_second_and_a_last_time_at_the_end() -> None:
    clock = MonotonicClock()
    process, url = server_process.start()
    engine = EngineSession(EngineConfig(name="auto", model="", url=url), clock)
    scrapes: list[SeriesScrape] = []
    try:
        await engine.start()
        async with asyncio.timeout(60):
            while len(scrapes) < 2:
                scrapes += engine.take_update().series
                await asyncio.sleep(0.01)
        await engine.final_scrape()
        scrapes += engine.take_update().series
    finally:
        await engine.close()
        server_process.stop(process)
    times = [scrape.at for scrape in scrapes]
    assert times[1] - times[0] >= 0.9
    assert len(times) >= 3
    assert times == sorted(set(times))
    assert "vllm:num_requests_waiting_by_reason{reason=capacity}" in scrapes[0].name_list
    assert [scrape.names for scrape in scrapes[1:]] == [None] * (len(scrapes) - 1)
