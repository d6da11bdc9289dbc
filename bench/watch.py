"""Measures a watch of many servers: `python bench/watch.py [--servers 50] [--seconds 60]`.

The servers are pages of one process on the loopback interface: that of a real vLLM 0.32 (656 lines), whose counters
rise, over connections that stay open. Either all of them serve, or requests wait at all of them and are preempted,
which is the most that there is to judge. Prints the CPU share and memory of the watch, without a dashboard, and how
fast this machine's cores were meanwhile, with which the share changes. Nothing passes or fails.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from tests.watched_server import WatchedServer, watched_server

SERVETOP = (sys.executable, "-m", "servetop")
PAGE = Path(__file__).parents[1] / "tests" / "engines" / "data" / "vllm" / "metrics_0.32.0.txt"
MODEL = "/models/tiny-llama"
OVERLOAD = ("vllm:num_preemptions_total", "vllm:num_requests_waiting")
"""What stays 0 at a server that is not overloaded."""
COUNTER = re.compile(r"^(vllm:\w+_(?:total|sum|count|bucket)(?:\{.*\})?) (\S+)$")


ADDITIONS, PAUSE = 1_000_000, 3.0


def served_pages(counted: int, *, overloaded: bool) -> dict[str, str]:
    """Return the pages of a vLLM whose counters and buckets have risen by this number."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    metrics = "".join(f"{_line(line, counted, overloaded=overloaded)}\n" for line in lines)
    models = json.dumps({"object": "list", "data": [{"id": MODEL, "object": "model", "owned_by": "vllm"}]})
    return {"/metrics": metrics, "/health": "", "/v1/models": models, "/version": '{"version": "0.32.0"}'}


def _line(line: str, counted: int, *, overloaded: bool) -> str:
    if line.startswith(OVERLOAD) and not overloaded:
        return f"{line.rpartition(' ')[0]} 0.0"
    return COUNTER.sub(lambda row: f"{row[1]} {float(row[2]) + counted}", line)


def serve(servers: list[WatchedServer], stopped: threading.Event, *, overloaded: bool) -> None:
    """Let the counters of all servers rise until stopped."""
    counted = 0
    while not stopped.wait(0.5):
        counted += 1
        pages = served_pages(counted, overloaded=overloaded)
        for server in servers:
            server.pages = pages


def measure(urls: list[str], seconds: float, folder: Path) -> str:
    """Return the CPU share and the memory of a watch from its second quarter on."""
    recording = folder / "watch.servetop"
    command = (
        *SERVETOP,
        "watch",
        *urls,
        "--headless",
        "--duration",
        f"{seconds + 30:.0f}s",
        "--record",
        str(recording),
    )
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        time.sleep(seconds / 4)
        watch = psutil.Process(process.pid)
        before, began = sum(watch.cpu_times()[:2]), time.monotonic()
        loops = [loop_seconds() for _ in sleeps(seconds * 3 / 4)]
        share = (sum(watch.cpu_times()[:2]) - before) / (time.monotonic() - began)
        memory = watch.memory_info().rss / 1e6
        process.terminate()
        process.wait(timeout=60)
    size = recording.stat().st_size / 1e6
    speed = f"a loop of {ADDITIONS:,} additions took {statistics.median(loops) * 1e3:.0f} ms"
    return f"{share:.1%} of a core, {memory:.0f} MB of memory, {size:.1f} MB recorded in {seconds:.0f} s; {speed}"


def sleeps(seconds: float) -> Iterator[None]:
    """Return after some time, in steps of PAUSE seconds."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        time.sleep(min(left, PAUSE))
        yield


def loop_seconds() -> float:
    """Return the processor time of a loop that depends on the speed of a core alone."""
    began, total = time.process_time(), 0
    for number in range(ADDITIONS):
        total += number
    return time.process_time() - began


def main() -> None:
    """Measure, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--servers", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    for overloaded in (False, True):
        state = "all overloaded" if overloaded else "all serve"
        print(f"a watch of {options.servers} servers, {state}: {watched(options, overloaded=overloaded)}", flush=True)


def watched(options: argparse.Namespace, *, overloaded: bool) -> str:
    """Return what a watch of servers takes that do not preempt, or do."""
    stopped = threading.Event()
    with contextlib.ExitStack() as running, tempfile.TemporaryDirectory() as folder:
        servers = [running.enter_context(watched_server(keeps_alive=True)) for _ in range(options.servers)]
        for server in servers:
            server.pages = served_pages(0, overloaded=overloaded)
        counting = threading.Thread(target=serve, args=(servers, stopped), kwargs={"overloaded": overloaded})
        counting.start()
        try:
            return measure([each.url for each in servers], options.seconds, Path(folder))
        finally:
            stopped.set()
            counting.join()


if __name__ == "__main__":
    main()
