"""Compares servetop's sender with other clients against one server that logs what it did: `make bench-client`.

    python bench/duel.py [--runs 5] [--seconds 8] [--client aiohttp …] [--shape paced256 …]

Server and client are pinned to different processors, and the measuring process to the server's; they do not sleep
(awake.py) unless `--let-sleep` is given. A client's CPU is that of its whole process tree, from its start to its end;
"under load" is the part between the first request's arrival at the server and the last response's end; TTFT errors are
the client's TTFT minus the server's own, request by request. Needs gcc; aiohttp and httpx-aiohttp (`pip install
'servetop[bench]'`); vLLM's benchmark in Rust is fetched (rust_bench.py), that in Python is included if
`make integration` has installed it.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import os
import socket
import statistics
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from awake import processors_awake
from client import SOURCE, Shape, build, pinned, shapes, wait_for_port
from contenders import (
    CPUS,
    Contender,
    CpuWatch,
    Seen,
    command,
    in_c,
    reference,
    servetop,
    vllm_bench,
)
from rust_bench import VLLM, rust_bench

from servetop.core.events import FloatArray

Log = Sequence[Mapping[str, str]]
NAMES = (
    "servetop, --engine vllm", "servetop, --engine openai", "servetop's sender alone", "C, epoll, no JSON", "aiohttp",
    "httpx over aiohttp", "vLLM bench (Python)", "vLLM bench (Rust)",
)  # fmt: skip
PYTHON_BENCH, RUST_BENCH = NAMES[-2:]


@dataclass(frozen=True)
class Bout:
    """One run of one client; times in ms, NaN for what the client does not report."""

    cpu_us: float
    """CPU time per event in µs, of the whole process tree from start to end."""
    loaded_us: float
    """The same from the first request's arrival to the last response's end."""
    ttft_p99: float
    """In excess of the server's p99."""
    error_p50: float
    error_p99: float
    itl_p99: float
    """In excess of the server's pace."""
    slip_p99: float
    rate: float
    """Requests (open loop) or tokens (else) per second, by the server's log."""


@contextmanager
def serving(program: Path, shape: Shape, log: Path) -> Iterator[int]:
    """Run the server at the load's pace on a port; its log is complete afterwards."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    pace = ["--ttft", str(shape.ttft_ms), "--itl", str(shape.itl_ms)]
    argv = pinned(CPUS[0], [str(program), "--port", str(port), *pace, "--log", str(log)])
    process = subprocess.Popen(argv, stderr=subprocess.DEVNULL)
    try:
        asyncio.run(wait_for_port(port))
        yield port
    finally:
        process.terminate()
        process.wait(10)


def bout(program: Path, contender: Contender, shape: Shape, name: str) -> Bout:
    """Run a load once and evaluate it with the server's log."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.csv"
        with serving(program, shape, log) as port:
            seen, watch = contender(shape, port, name)
        with log.open() as lines:
            rows = [row for row in csv.DictReader(lines) if int(row["n"])]
    return judged(seen, watch, rows, shape)


def judged(seen: Seen, watch: CpuWatch | None, rows: Log, shape: Shape) -> Bout:
    """Compare the client's measurements with the server's log."""
    columns = ("t_arr", "t_first", "t_end")
    arrived, first, end = (np.array([int(row[key]) for row in rows]) * 1e-9 for key in columns)
    events = sum(int(row["sent"]) for row in rows)
    began, over = float(arrived.min()), float(end.max())
    used = (seen.cpu_seconds if watch is None else watch.between(began, over)) or 0.0
    true = {row["xid"]: each for row, each in zip(rows, first - arrived, strict=True) if row["xid"]}
    errors = np.array([ttft - true[key] for key, ttft in seen.ttft.items() if key in true])
    is_open = shape.stage.request_rate != float("inf")
    last = float(arrived.max()) if is_open else over
    return Bout(
        cpu_us=(used if seen.whole_seconds is None else seen.whole_seconds) / events * 1e6,
        loaded_us=used / events * 1e6,
        ttft_p99=_ms(np.array(list(seen.ttft.values())), 99) - _ms(first - arrived, 99),
        error_p50=_ms(errors, 50),
        error_p99=_ms(errors, 99),
        itl_p99=_ms(seen.gaps, 99) - shape.itl_ms,
        slip_p99=_ms(seen.slips, 99),
        rate=((len(rows) - 1) if is_open else events) / (last - began),
    )


def _ms(values: FloatArray, q: float) -> float:
    return float(np.percentile(values, q)) * 1e3 if values.size else float("nan")


def table(name: str, bouts: Mapping[str, Sequence[Bout]], shape: Shape) -> str:
    """Medians over the runs; the ratio is the median of the ratios within each run."""
    unit = "req/s" if shape.stage.request_rate != float("inf") else "tok/s"
    heads = [
        "CPU µs/event",
        "× aiohttp",
        "× Rust",
        "under load",
        "TTFT p99 +ms",
        "TTFT err p50",
        "p99 ms",
        "ITL p99 +ms",
    ]
    lines = [f"{name:<26}" + "".join(f"{head:>13}" for head in [*heads, "slip p99 ms", unit])]
    for client, own in bouts.items():
        ratios = [_ratio(own, bouts.get(other, ())) for other in ("aiohttp", RUST_BENCH)]
        middle = [statistics.median(getattr(each, key) for each in own) for key in Bout.__dataclass_fields__]
        cells = [f"{middle[0]:.1f}", *ratios, f"{middle[1]:.1f}"]
        cells += [f"{each:.2f}" if each == each else "–" for each in middle[2:-1]] + [f"{middle[-1]:,.1f}"]
        lines.append(f"{client:<26}" + "".join(f"{cell:>13}" for cell in cells))
    return "\n".join(lines)


def _ratio(own: Sequence[Bout], others: Sequence[Bout]) -> str:
    ratios = [mine.cpu_us / other.cpu_us for mine, other in zip(own, others, strict=False)]
    return f"{statistics.median(ratios):.2f}" if ratios else "–"


def contenders(ccli: Path) -> Mapping[str, Contender]:
    """Return the clients that can run here; the others are printed."""
    libraries = (reference("aiohttp"), reference("httpx"))
    known = (command("vllm"), command("openai"), servetop, in_c(ccli), *libraries)
    clients = dict(zip(NAMES, known, strict=False))
    if VLLM.exists():
        clients[PYTHON_BENCH] = vllm_bench(VLLM / "bin" / "vllm")
    else:
        print("LEFT OUT: vLLM's benchmark in Python is not installed (make integration does that)")
    if (program := rust_bench()) is not None:
        clients[RUST_BENCH] = vllm_bench(program)
    return clients


def main() -> None:
    """Run all clients in turn in every run; print one table per load."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--client", action="append", choices=NAMES)
    parser.add_argument("--shape", action="append", choices=list(shapes(1.0)))
    parser.add_argument("--let-sleep", action="store_true", help="idle processors sleep, as they usually do")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, processors_awake(not options.let_sleep):
        program, ccli = build(Path(folder)), Path(folder) / "ccli"
        subprocess.run(["gcc", "-O2", "-w", "-o", ccli, SOURCE / "ccli.c", "-lm"], check=True)
        clients = contenders(ccli)
        clients = {name: clients[name] for name in options.client or clients if name in clients}
        if CPUS[0] is not None:
            os.sched_setaffinity(0, {CPUS[0]})  # the measuring process must not use the client's processor
        for name in options.shape or shapes(1.0):
            shape = shapes(options.seconds)[name]
            bouts: dict[str, list[Bout]] = {client: [] for client in clients}
            for _ in range(options.runs):
                for client, contender in clients.items():
                    bouts[client].append(bout(program, contender, shape, name))
            print(table(name, bouts, shape), end="\n\n", flush=True)


if __name__ == "__main__":
    main()
