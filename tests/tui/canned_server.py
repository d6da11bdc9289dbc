"""A small deterministic model of a server: the ticks of a ramp that fills its KV blocks until it preempts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from servetop.core.events import (
    EngineSample,
    GpuSample,
)
from servetop.core.histogram import LogHistogram
from servetop.core.tick import TICK_SECONDS, ClientTick, LoadGauges, Tick

BOOT = 6.0
"""Seconds until the load starts."""
RATES = (4.0, 8.0, 16.0, 20.0)
STAGE_SECONDS = 30.0
BLOCKS = 2880
BATCH = 192
PROMPT = 512
"""Tokens of most prompts."""
PEAK_SPEED = 2900.0
"""Output tokens/s of an endless batch."""
_BLOCKS_PER_REQUEST, _OUTPUT = 24.0, 128
_GIB = 1 << 30


@cache
def ticks(
    *, engine: bool = True, gpus: int = 1, seconds: float | None = None, peak_speed: float = PEAK_SPEED
) -> Sequence[Tick]:
    """Ticks of the ramp; the first BOOT seconds are without load."""
    length = BOOT + STAGE_SECONDS * len(RATES) if seconds is None else seconds
    return tuple(_simulated(round(length / TICK_SECONDS), engine=engine, gpus=gpus, peak_speed=peak_speed))


def _simulated(count: int, *, engine: bool, gpus: int, peak_speed: float) -> Iterator[Tick]:
    rng = np.random.default_rng(7)
    waiting = running = preempted = generated = prompted = done_share = 0.0
    times = [0.0] * 4
    for index in range(count):
        at = (index + 1) * TICK_SECONDS
        stage = min(int((at - BOOT - 1e-9) // STAGE_SECONDS), len(RATES) - 1) if at > BOOT else -1
        rate = RATES[stage] if stage >= 0 else 0.0
        due = int(rng.poisson(rate * TICK_SECONDS))
        room = BLOCKS / _BLOCKS_PER_REQUEST
        waiting += due
        admitted = min(waiting, BATCH - running, max(0.0, room - running))
        waiting, running = waiting - admitted, running + admitted
        grown = running * (1 + 0.04 * math.sin(at))
        evicted = max(0.0, grown - room * 0.96) * 0.5 if grown > room * 0.96 else 0.0
        speed = peak_speed * running / (running + 36.0)
        tokens = int(speed * TICK_SECONDS)
        done_share += tokens / _OUTPUT
        finished = int(min(done_share, running))
        done_share -= finished
        running -= finished
        preempted, generated, prompted = preempted + int(evicted), generated + tokens, prompted + admitted * PROMPT
        usage = min(grown * _BLOCKS_PER_REQUEST / BLOCKS, 0.998)
        client = _client(index, stage, rate, due, finished, tokens, admitted, waiting, running, speed, rng)
        sample = _sample(at, running, waiting, usage, preempted, prompted, generated)
        yield Tick(
            client=client,
            engine=_timed(sample, client, finished, times) if engine else None,
            gpus=tuple(_gpu(at, number, usage if stage >= 0 else 0.02) for number in range(gpus)),
        )


def _timed(sample: EngineSample, client: ClientTick, finished: int, sums: list[float]) -> EngineSample:
    """An engine that sees each first token 4 ms before its client does, and prefills in 41 ms."""
    count, queue = client.ttft.count, max(client.ttft.mean - 0.047, 0.0) if client.ttft.count else 0.0
    new = (client.ttft.total - 0.004 * count, count, finished * queue, finished * bool(count))
    sums[:] = [was + more for was, more in zip(sums, new, strict=True)]
    return replace(
        sample, first_token_seconds_total=sums[0], first_tokens_total=sums[1], queue_seconds_total=sums[2],
        queued_requests_total=sums[3], prefill_seconds_total=0.041 * sums[3], prefilled_requests_total=sums[3],
    )  # fmt: skip


def _client(
    index: int, stage: int, rate: float, due: int, finished: int, tokens: int, admitted: float, waiting: float,
    running: float, speed: float, rng: np.random.Generator,
) -> ClientTick:  # fmt: skip
    itl = 0.012 + running / 9000
    ttft = 0.05 + waiting / max(speed / _OUTPUT, 1.0)
    first = round(admitted)
    noise = rng.lognormal(0.0, 0.35, size=max(first, finished, 1))
    return ClientTick(
        index=index,
        gauges=LoadGauges(stage=stage, request_rate=rate if stage >= 0 else None, in_flight=round(running + waiting)),
        due=due,
        sent=due,
        ok=finished,
        prompt_tokens=first * PROMPT,
        output_tokens=tokens,
        chunks=tokens,
        cpu_seconds=0.02,
        ttft=LogHistogram.of(ttft * noise[:first]),
        ttft_due=LogHistogram.of(ttft * noise[:first] + 0.0007),
        itl=LogHistogram.of(itl * noise[:1], weights=[max(tokens, 1)]) if tokens else LogHistogram.of([]),
        tpot=LogHistogram.of(itl * noise[:finished]),
        e2el=LogHistogram.of((ttft + itl * _OUTPUT) * noise[:finished]),
        input_len=LogHistogram.of(np.rint(PROMPT * noise[:finished] ** 0.3)),
        output_len=LogHistogram.of(np.rint(_OUTPUT * noise[:finished])),
        slip=LogHistogram.of(np.full(due, 0.0007)),
        loop_lag=LogHistogram.of(np.full(10, 0.0004)),
    )


def _sample(
    at: float, running: float, waiting: float, usage: float, preempted: float, prompted: float, generated: float
) -> EngineSample:
    return EngineSample(
        scrape_start=at - 0.01, scrape_end=at - 0.006, running=round(running), waiting=round(waiting),
        kv_blocks_used=round(usage * BLOCKS), kv_blocks_total=BLOCKS, kv_usage=usage, preemptions_total=preempted,
        prompt_tokens_total=prompted, generation_tokens_total=generated, prefix_cache_hits_total=prompted * 0.31,
        prefix_cache_queries_total=prompted, max_num_seqs=BATCH,
    )  # fmt: skip


def _gpu(at: float, index: int, busy: float) -> GpuSample:
    return GpuSample(
        at=at, index=index, name="NVIDIA H200", utilisation=min(0.02 + busy * 0.97, 0.99),
        memory_used=int(126.4 * _GIB), memory_total=int(139.8 * _GIB), power=120 + 560 * busy,
        temperature=38 + 30 * busy, sm_clock=1.98e9,
    )  # fmt: skip
