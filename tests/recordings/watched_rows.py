"""Ticks of a watch with a known load: 40 tokens and 2 requests a second, and a wave of running requests."""

import math

from servetop.core.events import EngineSample, GpuSample, ReplicaSample
from servetop.core.interfaces.series_scrape import SeriesScrape, pack_numbers
from servetop.core.tick import TICK_SECONDS, ClientTick, Tick
from servetop.recordings.write.tick_transaction import TickTransaction

NAMES = "vllm:a_bucket{le=1}\nvllm:a_bucket{le=inf}\nvllm:a_sum"


def running_at(at: float) -> float:
    """Requests that run at a time: 8, and 20 for half a second of every minute."""
    return 20.0 if 17.0 < at % 60.0 <= 17.5 else 8.0 + round(4.0 * math.sin(at / 20.0))


def fields_at(at: float, *, since: float = 0.0) -> dict[str, float]:
    """Fields of a sample of a server that started at `since`."""
    return {
        "scrape_start": at - 0.02,
        "scrape_end": at - 0.01,
        "running": running_at(at),
        "waiting": 0.0,
        "kv_usage": running_at(at) / 40.0,
        "kv_blocks_total": 100.0,
        "generation_tokens_total": float(math.floor((at - since) * 40.0)),
        "requests_finished_total": float(math.floor((at - since) * 2.0)),
        "preemptions_total": float((at - since) // 35.0),
        "first_token_seconds_total": (at - since) * 0.4,
        "first_tokens_total": float(math.floor((at - since) * 2.0)),
    }


def scrape_at(at: float, *, replica: int | None = None, named: bool) -> SeriesScrape:
    """Return a scrape of three series: half of the requests are below the first bound."""
    numbers = (math.floor(at), math.floor(at) * 2.0, at * 0.4)
    return SeriesScrape(at=at, names=NAMES if named else None, numbers=pack_numbers(numbers), replica=replica)


def watched_tick(number: int, *, since: float = 0.0, gpus: int = 0) -> TickTransaction:
    """Return what a watch of one server records in a tick."""
    end = (number + 1) * TICK_SECONDS
    sample = EngineSample(**fields_at(end, since=since))
    devices = tuple(
        GpuSample(at=end - 0.01, index=each, name="H200", utilisation=running_at(end) / 20, energy=end * 300.0)
        for each in range(gpus)
    )
    series = [scrape_at(end - 0.01, named=number % 200 == 0)] if number % 4 == 0 else []
    tick = Tick(client=ClientTick(index=number), engine=sample, gpus=devices)
    return TickTransaction(tick=tick, engine_samples=[sample], engine_series=series, gpu_samples=devices)


def fleet_tick(number: int, *, replicas: int) -> TickTransaction:
    """Return what a watch of several servers records in a tick: each is read once a second."""
    end = (number + 1) * TICK_SECONDS
    whole = number % 4 == 0
    samples = [ReplicaSample(replica=each, **fields_at(end)) for each in range(replicas) if whole]
    series = [scrape_at(end - 0.01, replica=each, named=number % 200 == 0) for each in range(replicas) if whole]
    read = EngineSample(**fields_at((number // 4 * 4 + 1) * TICK_SECONDS))
    return TickTransaction(
        tick=Tick(client=ClientTick(index=number), engine=read),
        engine_samples=[read] if whole else [],
        replica_samples=samples,
        engine_series=series,
    )
