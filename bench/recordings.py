"""Measures writing, opening and summarising recordings: `python bench/recordings.py [MINUTES]` (default 10).

Prints one line per measurement. The run it writes has 250 requests of 32 tokens in every tick (1,000 requests/s).
"""

from __future__ import annotations

import resource
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from servetop.core.arrays import FloatArray
from servetop.core.clock import ClockAnchor, MonotonicClock
from servetop.core.config import RunConfig
from servetop.core.events import EngineSample, RequestRecord, RequestStatus, RunEnd
from servetop.core.histogram import LogHistogram
from servetop.core.interfaces.run_source import RunHeader
from servetop.core.tick import TICK_SECONDS, ClientTick, Tick
from servetop.recordings.library.catalog import describe
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.tick_transaction import TickTransaction
from servetop.reports.summary.summary import run_summary

REQUESTS_PER_TICK = 250
TOKENS = 32


def batch_of(number: int, gaps: FloatArray) -> TickTransaction:
    """Return one tick of a busy run; `gaps` has shape (requests, tokens), the same number of requests each tick."""
    start = number * TICK_SECONDS
    arrivals = start + 0.001 + np.cumsum(gaps, axis=1)
    requests = [
        RequestRecord(
            id=number * len(gaps) + index,
            stage=0,
            due=start,
            sent=start + 0.001,
            headers_at=start + 0.002,
            first_token_at=float(times[0]),
            done_at=float(times[-1]),
            prompt_tokens=128,
            output_tokens=times.size,
            status=RequestStatus.OK,
            chunk_times=times,
            chunk_tokens=np.ones(times.size, dtype=np.int64),
        )
        for index, times in enumerate(arrivals)
    ]
    ttft, itl = LogHistogram.of(gaps[:, 0]), LogHistogram.of(gaps.ravel())
    client = ClientTick(
        index=number, ok=len(requests), output_tokens=gaps.size, ttft=ttft, ttft_due=ttft, itl=itl, tpot=itl, e2el=ttft
    )
    sample = EngineSample(scrape_start=start, scrape_end=start + 0.01, running=250.0, waiting=0.0, kv_usage=0.5)
    return TickTransaction(tick=Tick(client=client, engine=sample), requests=requests, engine_samples=[sample])


def seconds_of(action: Callable[[], object]) -> float:
    """Return the seconds that a call takes."""
    clock = MonotonicClock()
    action()
    return clock.now()


def write(path: Path, ticks: int, *, requests: int = REQUESTS_PER_TICK) -> FloatArray:
    """Record a run and return the time of each commit in seconds."""
    generator = np.random.default_rng(1)
    recorder = Recorder.create(path, RunHeader(config=RunConfig(), anchor=ClockAnchor.take()))
    gaps = generator.gamma(4.0, 0.005, (8, requests, TOKENS))
    taken = []
    for number in range(ticks):
        batch = batch_of(number, gaps[number % len(gaps)])
        clock = MonotonicClock()
        recorder.commit(batch)
        taken.append(clock.now())
    recorder.close(RunEnd(at=ticks * TICK_SECONDS, exit_code=0, reason=""))
    return np.array(taken)


def main(minutes: float) -> None:
    """Write, open, list and summarise a run of that many minutes."""
    ticks = round(minutes * 60 / TICK_SECONDS)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.servetop"
        taken = write(path, ticks)
        p50, p99 = np.percentile(taken, [50, 99]) * 1e3
        say(f"{ticks} commits of {REQUESTS_PER_TICK} requests: p50 {p50:.1f} ms, p99 {p99:.1f} ms")
        say(f"file: {path.stat().st_size / 1e6:.0f} MB")
        opened: list[RecordingReader] = []
        say(f"open: {seconds_of(lambda: opened.append(RecordingReader.open(path))) * 1e3:.1f} ms")
        reader = opened[0]
        say(f"first poll: {seconds_of(reader.poll):.2f} s; idle poll: {seconds_of(reader.poll) * 1e6:.0f} µs")
        say(f"describe: {seconds_of(lambda: describe(path)) * 1e3:.1f} ms")
        middle = ticks * TICK_SECONDS / 2
        say(f"requests of one second: {seconds_of(lambda: reader.requests(middle, middle + 1)) * 1e3:.0f} ms")
        say(f"summary of {ticks * REQUESTS_PER_TICK} requests: {seconds_of(lambda: run_summary(reader)):.1f} s")
        reader.close()
    say(f"most memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


def say(line: str) -> None:
    """Print a measurement at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 10.0)
