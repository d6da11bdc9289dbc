"""Writes a long recording with overloads, which gives the dashboard and the judgement the most to do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from recordings import TOKENS, batch_of
from servetop.core.arrays import FloatArray
from servetop.core.clock import ClockAnchor
from servetop.core.config import RunConfig
from servetop.core.events import EngineSample, RequestRecord, RunEnd, StageChange
from servetop.core.histogram import LogHistogram
from servetop.core.interfaces.run_source import EngineFacts, RunHeader
from servetop.core.tick import TICK_SECONDS, ClientTick, LoadGauges, Tick
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.tick_transaction import TickTransaction

CYCLE = 2_400
"""Ticks from one overload to the next: ten minutes."""
OVERLOADED = 720
"""Ticks of each overload, at the end of its cycle; the queue grows for two thirds of it."""
STAGE = 1_200
"""Ticks of each stage."""
SLOTS = 256
LONGEST_QUEUE = 1_000
OBJECTIVE = 0.5


def waiting_at(number: int) -> int:
    """Return the requests that wait in a tick."""
    depth = max(number % CYCLE - (CYCLE - OVERLOADED), 0) / OVERLOADED
    return round(LONGEST_QUEUE * (1.5 * depth if depth < 2 / 3 else 3 * (1 - depth)))


def requests_of(number: int, gaps: FloatArray, wait: float) -> list[RequestRecord]:
    """Return the requests of a tick, which were due `wait` seconds before they were served."""
    served = batch_of(number, gaps).requests
    return [replace(each, due=each.due - wait, sent=each.due - wait + 0.001) for each in served]


def client_tick(number: int, gaps: FloatArray, wait: float) -> ClientTick:
    """Return the client's counts and histograms of a tick."""
    count = len(gaps)
    gauges = LoadGauges(stage=number // STAGE, request_rate=count / TICK_SECONDS, in_flight=SLOTS + waiting_at(number))
    ttft, itl, good = LogHistogram.of(gaps[:, 0] + wait), LogHistogram.of(gaps.ravel()), count * (wait <= OBJECTIVE)
    return ClientTick(
        index=number, gauges=gauges, due=count, sent=count, ok=count, good=good, good_due=good,
        prompt_tokens=128 * count, output_tokens=gaps.size, chunks=gaps.size, ttft=ttft, ttft_due=ttft, itl=itl,
        tpot=itl, e2el=LogHistogram.of(gaps.sum(axis=1) + wait), slip=LogHistogram.of(gaps[:, 0] / 50),
        input_len=LogHistogram.of(np.full(count, 128.0)),
        output_len=LogHistogram.of(np.full(count, float(gaps.shape[1]))),
    )  # fmt: skip


def write_busy(path: Path, ticks: int, *, requests: int, tokens: int = TOKENS) -> None:
    """Record a run with an overload in each cycle; `requests` per tick, of `tokens` tokens each."""
    generator = np.random.default_rng(1)
    facts = EngineFacts(name="vllm", title="vLLM", kv_blocks_total=2_000, block_size=16, max_num_seqs=SLOTS)
    config = RunConfig(goodput={"ttft": OBJECTIVE})
    recorder = Recorder.create(path, RunHeader(config=config, anchor=ClockAnchor.take(), engine=facts))
    gaps = generator.gamma(4.0, 0.005, (8, requests, tokens))
    preempted = 0
    for number in range(ticks):
        waiting, start, chosen = waiting_at(number), number * TICK_SECONDS, gaps[number % len(gaps)]
        preempted += generator.poisson(4.0) if waiting else 0
        sample = EngineSample(
            scrape_start=start, scrape_end=start + 0.01, running=SLOTS * (0.9 if waiting else 0.5), waiting=waiting,
            kv_usage=0.999 if waiting else 0.5, preemptions_total=preempted, max_num_seqs=SLOTS,
            generation_tokens_total=(number + 1) * chosen.size,
        )  # fmt: skip
        rate, wait = requests / TICK_SECONDS, min(waiting * TICK_SECONDS / requests, start)
        stage = StageChange(
            at=start, index=number // STAGE, label=f"{rate:g} req/s", request_rate=rate, max_concurrency=None,
            max_num_seqs=SLOTS,
        )  # fmt: skip
        recorder.commit(
            TickTransaction(
                tick=Tick(client=client_tick(number, chosen, wait), engine=sample),
                requests=requests_of(number, chosen, wait),
                engine_samples=[sample],
                stages=[stage] if number % STAGE == 0 else [],
            )
        )
    recorder.close(RunEnd(at=ticks * TICK_SECONDS, exit_code=0, reason=""))
