"""Measures one sender's limits and memory: `python bench/limits.py`. Needs gcc.

Start-up to the first request at the server; 10,000 open streams; 2,000 requests per second; resident memory per stream
in flight (including its connection), per chunk, and over time; the processor time per event of two senders that share
twice the load (wall time would require a processor for each of them and one for the server). Uses bench/sseserver.
"""

from __future__ import annotations

import asyncio
import csv
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import psutil
from client import BEGIN_AHEAD, Shape, build, pinned, run_once
from contenders import CPUS
from duel import serving

from servetop.analysis.trust.trust import LOOP_LAG_LIMIT, SLIP_LIMIT
from servetop.core.clock import MonotonicClock
from servetop.core.config import StageConfig, WorkloadConfig
from servetop.core.tick import ClientTick, merge_client_ticks
from servetop.loadgen.messages import SenderSetup
from servetop.loadgen.worker.sender_handle import SenderHandle
from servetop.workload.stages.plan import LoadPhase, LoadPlan

MANY = Shape(ttft_ms=2000, itl_ms=1000, tokens=6, stage=StageConfig(max_concurrency=10_000, num_prompts=10_000))
QUICK = Shape(ttft_ms=5, itl_ms=2, tokens=4, stage=StageConfig(request_rate=2000.0, duration=6.0))
LONG = Shape(ttft_ms=20, itl_ms=10, tokens=2400, stage=StageConfig(max_concurrency=256, num_prompts=256))
PACED = Shape(ttft_ms=20, itl_ms=10, tokens=600, stage=StageConfig(max_concurrency=256, num_prompts=256))
TWICE = replace(PACED, stage=StageConfig(max_concurrency=512, num_prompts=512))
STEADY = Shape(ttft_ms=20, itl_ms=5, tokens=32, stage=StageConfig(request_rate=400.0, duration=24.0))


@dataclass(frozen=True)
class Played:
    """One run of a sender: its merged tick, and resident bytes and requests in flight at every tick."""

    total: ClientTick
    resident: np.ndarray
    in_flight: np.ndarray
    chunks: np.ndarray
    """Seconds since the start, at every tick."""


async def play(shape: Shape, port: int, ahead: float) -> Played:
    """Run a sender process and read its memory at every report."""
    clock = MonotonicClock()
    workload = WorkloadConfig(input_len=16, output_len=shape.tokens)
    setup = SenderSetup(
        url=f"http://127.0.0.1:{port}", model="tiny-llama", origin_ns=clock.origin_ns, workload=workload
    )
    sender = await SenderHandle.start(
        pinned(CPUS[1], [sys.executable, "-m", "servetop.run.process.sender_program"]), setup
    )
    process = psutil.Process(sender.pid)
    await sender.begin(LoadPlan(segments=((0, shape.stage),), begin=clock.now() + ahead))
    ticks: list[ClientTick] = []
    resident: list[int] = []
    async for report in sender.reports():
        ticks.append(report.tick)
        resident.append(process.memory_info().rss)
        if report.state is LoadPhase.FINISHED:
            break
    await sender.close()
    total = merge_client_ticks(ticks, gauges=ticks[-1].gauges)
    chunks = np.cumsum([tick.chunks for tick in ticks])
    return Played(total, np.array(resident), np.array([tick.gauges.in_flight for tick in ticks]), chunks)


def measure(program: Path, shape: Shape, *, ahead: float = BEGIN_AHEAD) -> tuple[Played, float]:
    """Run a load against a new server; return also the seconds from process start to the first request's arrival."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.csv"
        with serving(program, shape, log) as port:
            began = time.perf_counter_ns()
            played = asyncio.run(play(shape, port, ahead))
        with log.open() as lines:
            first = min(int(row["t_arr"]) for row in csv.DictReader(lines) if int(row["n"]))
    return played, (first - began) * 1e-9


def event_cost(program: Path, shape: Shape, *, workers: int) -> float:
    """CPU seconds of all senders per event."""
    cpus = (CPUS[0], CPUS[1] if workers == 1 else None)
    total = asyncio.run(run_once(program, shape, cpus, transport="raw", workers=workers)).total
    return total.cpu_seconds / total.chunks


def main() -> None:
    """Print one line per figure."""
    with tempfile.TemporaryDirectory() as folder:
        program = build(Path(folder))
        one = replace(QUICK, stage=StageConfig(max_concurrency=1, num_prompts=1))
        starts = [measure(program, one, ahead=0.0)[1] for _ in range(5)]
        print(f"start to first request           {np.median(starts):8.2f} s      (target ≤ 0.3)")

        many, _ = measure(program, MANY)
        most = int(many.in_flight.max())
        each = (many.resident.max() - many.resident[0]) / most / 1024
        print(f"streams open at once             {most:8,d}        ok {many.total.ok:,}, failed {many.total.failed:,}")
        print(f"memory a stream in flight        {each:8.1f} KiB    (its connection and its kept chunks included)")

        quick, _ = measure(program, QUICK)
        slip, lag = (found.percentile(99) * 1e3 for found in (quick.total.slip, quick.total.loop_lag))
        print(f"2,000 requests/s, slip p99       {slip:8.2f} ms     (trust turns at {SLIP_LIMIT * 1e3:g})")
        print(f"2,000 requests/s, loop lag p99   {lag:8.2f} ms     (trust turns at {LOOP_LAG_LIMIT * 1e3:g})")
        print(f"2,000 requests/s, achieved       {quick.total.sent / 6.0:8,.0f} req/s  ok {quick.total.ok:,}")

        long, _ = measure(program, LONG)
        start, end = np.searchsorted(long.chunks, [0.2 * long.chunks[-1], 0.98 * long.chunks[-1]])
        grown, more = long.resident[end] - long.resident[start], long.chunks[end] - long.chunks[start]
        print(f"memory a chunk kept              {grown / more:8.1f} B      (target ≤ 4, before array growth)")

        steady, _ = measure(program, STEADY)
        third = steady.resident.size // 3
        early, late = steady.resident[third], steady.resident[-third // 2]
        print(f"growth over 12 s at 400 requests/s {(late - early) / 1024:8.0f} KiB")

        pairs = [(event_cost(program, PACED, workers=1), event_cost(program, TWICE, workers=2)) for _ in range(5)]
        one_sender, two = np.median(pairs, axis=0) * 1e6
        times = np.median([2 * alone / shared for alone, shared in pairs])
        print(f"an event, one sender             {one_sender:8.1f} µs     (256 streams; processor time)")
        print(f"an event, two with twice the load {two:7.1f} µs     ({times:.2f} x one sender's; target ≥ 1.8)")


if __name__ == "__main__":
    main()
