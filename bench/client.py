"""Measures the sender's cost and accuracy against bench/sseserver, which logs what really happened.

    python bench/client.py [--shape paced256|open400|closed256] [--seconds 8] [--runs 3] [--server-cpu 1 --client-cpu 0]
                           [--transport raw|httpx] [--workers 1]

Prints one line per run: CPU time of the sender process per streamed event, the sender's TTFT minus the server's for
each request (matched by x-request-id), slip, achieved rate. Needs gcc.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import math
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from servetop.core.clock import MonotonicClock
from servetop.core.config import ConnectionConfig, StageConfig, WorkloadConfig
from servetop.core.events import RequestRecord
from servetop.core.tick import ClientTick, merge_client_ticks
from servetop.loadgen.messages import SenderSetup
from servetop.loadgen.worker.start_senders import start_senders
from servetop.workload.stages.plan import LoadPhase, LoadPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A load and the server's pace in milliseconds."""

    ttft_ms: float
    itl_ms: float
    tokens: int
    stage: StageConfig


SOURCE = Path(__file__).parent / "sseserver"
BEGIN_AHEAD = 0.6


def shapes(seconds: float) -> Mapping[str, Shape]:
    """Return the loads by name; each lasts about `seconds`, the paced one three times as long."""
    paced_tokens = int(seconds * 100)
    return {
        "paced256": Shape(
            ttft_ms=37, itl_ms=10, tokens=paced_tokens, stage=StageConfig(max_concurrency=256, num_prompts=768)
        ),
        "open400": Shape(
            ttft_ms=20, itl_ms=5, tokens=32, stage=StageConfig(request_rate=400.0, duration=seconds)
        ),
        "closed256": Shape(
            ttft_ms=0, itl_ms=0, tokens=256, stage=StageConfig(max_concurrency=256, duration=seconds)
        ),
    }  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The results of one run."""

    total: ClientTick
    records: Sequence[RequestRecord]
    seconds: float
    log: Mapping[str, Mapping[str, str]]
    """The server's log by request id."""
    origin_ns: int


def build(folder: Path) -> Path:
    """Compile the server."""
    target = folder / "sseserver"
    subprocess.run(["gcc", "-O2", "-w", "-o", target, SOURCE / "sseserver.c", "-lm"], check=True)
    return target


def pinned(cpu: int | None, argv: Sequence[str]) -> Sequence[str]:
    """Pin a command to one CPU, if taskset is installed."""
    return argv if cpu is None else ["taskset", "-c", str(cpu), *argv]


async def wait_for_port(port: int) -> None:
    """Wait until the port accepts connections, 5 s at most."""
    async with asyncio.timeout(5):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.01)
            else:
                writer.close()
                return


async def play(
    shape: Shape, port: int, cpu: int | None, *, transport: str = "raw", workers: int = 1
) -> tuple[ClientTick, Sequence[RequestRecord], int, float]:
    """Run the senders; return their merged tick, their records, the time origin and the load's duration."""
    clock = MonotonicClock()
    setup = SenderSetup(
        url=f"http://127.0.0.1:{port}",
        model="tiny-llama",
        origin_ns=clock.origin_ns,
        workload=WorkloadConfig(input_len=16, output_len=shape.tokens),
        connection=ConnectionConfig(transport=transport),
    )
    argv = pinned(cpu, [sys.executable, "-m", "servetop.run.process.sender_program"])
    sender = await start_senders(argv, setup, workers=workers)
    begin = clock.now() + BEGIN_AHEAD
    await sender.begin(LoadPlan(segments=((0, shape.stage),), begin=begin))
    ticks: list[ClientTick] = []
    records: list[RequestRecord] = []
    async for report in sender.reports():
        ticks.append(report.tick)
        records += report.records
        if report.state is LoadPhase.FINISHED:
            break
    await sender.close()
    total = merge_client_ticks(ticks, gauges=ticks[-1].gauges)
    return total, records, clock.origin_ns, max(record.done_at or 0.0 for record in records) - begin


async def run_once(
    server: Path, shape: Shape, cpus: tuple[int | None, int | None], *, transport: str, workers: int
) -> Result:
    """Start the server, run the load, stop the server and read its log."""
    with tempfile.TemporaryDirectory() as folder, socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        log = Path(folder) / "log.csv"
        pace = ["--ttft", str(shape.ttft_ms), "--itl", str(shape.itl_ms)]
        argv = pinned(cpus[0], [str(server), "--port", str(port), *pace, "--log", str(log)])
        process = subprocess.Popen(argv, stderr=subprocess.DEVNULL)
        try:
            await wait_for_port(port)
            total, records, origin_ns, seconds = await play(shape, port, cpus[1], transport=transport, workers=workers)
        finally:
            process.terminate()
            process.wait(10)
        with log.open() as lines:
            rows = {row["xid"]: row for row in csv.DictReader(lines)}
    return Result(total=total, records=records, seconds=seconds, log=rows, origin_ns=origin_ns)


def ttft_errors(result: Result) -> np.ndarray:
    """Return each request's TTFT error in seconds; the server's TTFT is first byte minus arrival."""
    errors = []
    for record in result.records:
        row = result.log.get(f"servetop-{result.origin_ns:x}-{record.worker}-{record.id}")
        if row is not None and record.ttft is not None:
            errors.append(record.ttft - (int(row["t_first"]) - int(row["t_arr"])) * 1e-9)
    return np.array(errors)


def line(name: str, shape: Shape, result: Result) -> str:
    """Format one run as a line."""
    total = result.total
    slips = np.array([record.sent - record.due for record in result.records if record.sent is not None])
    errors = ttft_errors(result)
    gaps = np.concatenate([np.diff(record.chunk_times) for record in result.records])
    ttfts = np.array([record.ttft for record in result.records if record.ttft is not None])
    parts = [
        f"{name:9s} ok {total.ok} failed {total.failed}",
        f"cpu {total.cpu_seconds / max(total.chunks, 1) * 1e6:5.1f} µs/event",
        f"{total.chunks / result.seconds:8.0f} events/s",
        f"TTFT p99 {np.percentile(ttfts, 99) * 1e3:.2f} ms",
        f"TTFT error p50 {np.percentile(errors, 50) * 1e3:.3f} p99 {np.percentile(errors, 99) * 1e3:.3f} ms",
        f"ITL p99 {np.percentile(gaps, 99) * 1e3:.2f} ms",
        f"slip p50 {np.percentile(slips, 50) * 1e3:.3f} p99 {np.percentile(slips, 99) * 1e3:.3f} ms",
        f"lag p99 {total.loop_lag.percentile(99) * 1e3:.2f} ms",
        f"{total.sent / (shape.stage.duration or result.seconds):.1f} req/s",
    ]
    return " | ".join(parts)


def main() -> None:
    """Print one line per shape and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", action="append", choices=list(shapes(1.0)))
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--server-cpu", type=int, default=1 if (os.cpu_count() or 1) > 1 else None)
    parser.add_argument("--client-cpu", type=int, default=0 if (os.cpu_count() or 1) > 1 else None)
    parser.add_argument("--transport", choices=("raw", "httpx"), default="raw")
    parser.add_argument(
        "--workers", type=int, default=1, help="sender processes; with several, --client-cpu is ignored"
    )
    options = parser.parse_args()
    if not (options.seconds > 0 and math.isfinite(options.seconds)):
        parser.error("--seconds must be above 0")
    if options.workers < 1:
        parser.error("--workers must be 1 or more")
    cpus = (options.server_cpu, options.client_cpu if options.workers == 1 else None)
    with tempfile.TemporaryDirectory() as folder:
        server = build(Path(folder))
        for _ in range(options.runs):
            for name in options.shape or ["paced256", "open400"]:
                shape = shapes(options.seconds)[name]
                result = asyncio.run(
                    run_once(server, shape, cpus, transport=options.transport, workers=options.workers)
                )
                print(line(name, shape, result), flush=True)


if __name__ == "__main__":
    main()
