"""An engine is scraped at absolute times, one scrape after the other."""

from __future__ import annotations

import asyncio
import math

from servetop.core.clock import ManualClock
from servetop.core.events import EngineSample
from servetop.engines.metrics.metrics_sampler import EngineSampler


class SlowEngine:
    """Takes `takes` seconds of a manual clock for each scrape; every scrape's start is kept."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.takes = 0.010
        self.readable = True
        self.starts: list[float] = []

    async def sample(self) -> EngineSample | None:
        start = self.clock.now()
        self.starts.append(start)
        await self.clock.sleep_until(start + self.takes)
        return EngineSample(scrape_start=start, scrape_end=self.clock.now()) if self.readable else None


class SilentEngine:
    """A reader that has had one sample, and nothing new since."""

    def __init__(self) -> None:
        self.reported = EngineSample(scrape_start=0.0, scrape_end=0.01, running=3.0)
        self.requested = 0

    async def sample(self) -> EngineSample:
        self.requested += 1
        return self.reported


async def let_tasks_run() -> None:
    for _ in range(6):
        await asyncio.sleep(0)


async def advance(clock: ManualClock, to: float) -> None:
    await let_tasks_run()
    while clock.now() < to:
        clock.advance_to(round(min(to, clock.now() + 0.005), 3))
        await let_tasks_run()


async def test_scrapes_start_at_multiples_of_a_tick_and_are_handed_out_once() -> None:
    clock = ManualClock(0.1)
    engine = SlowEngine(clock)
    sampler = EngineSampler(engine, clock)
    assert (sampler.newest, sampler.age()) == (None, math.inf)
    sampler.start()
    await advance(clock, 1.1)
    assert engine.starts == [0.1, 0.25, 0.5, 0.75, 1.0]
    assert [sample.scrape_start for sample in sampler.drain()] == engine.starts
    assert sampler.drain() == []
    assert sampler.newest is not None
    assert sampler.newest.scrape_start == 1.0
    assert math.isclose(sampler.age(), 0.09)
    await sampler.stop()


async def test_slow_scrapes_skip_their_missed_times_instead_of_piling_up() -> None:
    clock = ManualClock()
    engine = SlowEngine(clock)
    engine.takes = 0.6
    sampler = EngineSampler(engine, clock)
    sampler.start()
    await advance(clock, 3.0)
    assert engine.starts == [0.0, 0.75, 1.5, 2.25, 3.0]
    await sampler.stop()


async def test_a_failed_scrape_hides_the_older_sample_but_keeps_its_age() -> None:
    clock = ManualClock()
    engine = SlowEngine(clock)
    sampler = EngineSampler(engine, clock)
    sampler.start()
    await advance(clock, 0.2)
    engine.readable = False
    await advance(clock, 1.01)
    assert sampler.newest is None
    assert math.isclose(sampler.age(), 1.0)
    assert len(sampler.drain()) == 1
    await sampler.stop()


async def test_a_sample_that_the_engine_gives_again_is_handed_out_once_and_keeps_its_age() -> None:
    clock = ManualClock()
    silent = SilentEngine()
    sampler = EngineSampler(silent, clock)
    sampler.start()
    await advance(clock, 1.0)
    assert silent.requested == 5
    assert sampler.drain() == [silent.reported]
    assert sampler.newest is silent.reported
    assert math.isclose(sampler.age(), 0.99)
    await sampler.stop()


async def test_a_page_that_takes_long_is_read_less_often_and_again_as_before_when_it_does_not() -> None:
    clock = ManualClock()
    engine = SlowEngine(clock)
    sampler = EngineSampler(engine, clock, period=1.0, offset=0.5, sparing=True)
    sampler.start()
    await advance(clock, 8.0)
    assert engine.starts == [0.0, 0.5, 1.5, 2.5, 3.5, 5.25, 7.0], "five readings of 10 ms are known at 3.5 s"
    engine.takes = 0.005
    await advance(clock, 11.5)
    assert engine.starts[7:] == [8.75, 9.75, 10.75], "one of 5 ms is short: the others waited for other work"
    await sampler.stop()


async def test_a_failed_scrape_of_a_page_that_takes_long_is_soon_repeated() -> None:
    clock = ManualClock()
    engine = SlowEngine(clock)
    sampler = EngineSampler(engine, clock, period=1.0, sparing=True)
    sampler.start()
    await advance(clock, 5.0)
    engine.readable = False
    await advance(clock, 9.0)
    assert engine.starts == [0.0, 1.0, 2.0, 3.0, 4.0, 5.75, 6.75, 7.75, 8.75]
    await sampler.stop()


async def test_a_slow_page_of_an_engine_under_load_is_read_as_often_as_any_other() -> None:
    clock = ManualClock()
    engine = SlowEngine(clock)
    sampler = EngineSampler(engine, clock, period=1.0)
    sampler.start()
    await advance(clock, 8.0)
    assert engine.starts == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
    await sampler.stop()
