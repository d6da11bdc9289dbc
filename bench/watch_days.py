"""Measures the recording of a watch of days in virtual time: `python bench/watch_days.py [--servers 1] [--hours 24]`.

The servers are modelled: requests arrive at random, more of them at noon, and each server has the counters, gauges and
histograms of a vLLM page. Prints size, memory and times of the commands that read all of it; nothing passes or fails.
A week is `--hours 168`.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from servetop.core.clock import ClockAnchor, MonotonicClock
from servetop.core.config import RunConfig
from servetop.core.config_values.watch_config import WatchConfig
from servetop.core.events import EngineSample, ReplicaSample, RunEnd
from servetop.core.interfaces.replica_change import ReplicaChange, ReplicaState, facts_text
from servetop.core.interfaces.run_source import EngineFacts, RunHeader
from servetop.core.interfaces.series_scrape import SeriesScrape, pack_numbers
from servetop.core.tick import TICK_SECONDS, ClientTick, Tick
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.tick_transaction import TickTransaction

HISTOGRAMS = ("time_to_first_token", "inter_token_latency", "e2e_request_latency", "request_queue_time")
BOUNDS = np.geomspace(0.001, 600.0, 24)
OTHERS = 60
"""Further series of a page, most of which are constant."""
BLOCKS, SLOTS = 30_000, 256
_TIMES = 3
"""Runs of each command, of which the median counts."""
_COMMAND = """
import sys
from servetop.cli.main import main
try: main(sys.argv[1:])
except SystemExit: pass
"""
_REPLAY = """
import sys
from pathlib import Path
from servetop.core.clock import ManualClock
from servetop.recordings.read.reader import RecordingReader
from servetop.tui.options import DashboardOptions
from servetop.tui.run_viewer import RunViewer
viewer = RunViewer(DashboardOptions(), ManualClock(), redraw=lambda: None, call_later=lambda *_: None)
viewer.open(RecordingReader.open(Path(sys.argv[1])))
viewer.frame()
"""
_USED = """
import resource
used = resource.getrusage(resource.RUSAGE_SELF)
print(used.ru_utime + used.ru_stime, used.ru_maxrss, file=sys.stderr)
"""


class ModelledServer:
    """A server with a random load that changes over the day; `step` is a quarter of a second."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self.buckets = np.zeros((len(HISTOGRAMS), BOUNDS.size + 1))
        self.sums = np.zeros(len(HISTOGRAMS))
        self.running = self.waiting = 0.0
        self.prompt = self.output = self.finished = self.preempted = 0.0
        self.newest: EngineSample | None = None

    def step(self, at: float) -> None:
        """Advance by one tick."""
        rate = 8.0 + 6.0 * np.sin(2 * np.pi * at / 86400)
        arrived = self._random.poisson(rate * TICK_SECONDS)
        ended = self._random.binomial(int(self.running), 0.02)
        self.waiting += arrived
        admitted = min(self.waiting, SLOTS - self.running + ended)
        self.waiting -= admitted
        self.running += admitted - ended
        self.finished += ended
        self.prompt += float(self._random.integers(100, 3000, int(admitted)).sum())
        self.output += self.running * 8
        self.preempted += float(self._random.random() < 0.001)
        for number, scale in enumerate((0.2, 0.03, 12.0, 0.05)):
            values = self._random.gamma(2.0, scale, int(ended))
            self.sums[number] += values.sum()
            self.buckets[number] += np.bincount(np.searchsorted(BOUNDS, values), minlength=BOUNDS.size + 1)

    def fields(self, at: float) -> dict[str, float]:
        """Return the fields of a sample."""
        used = float(round(min(self.running * 90, BLOCKS)))
        late = float(self._random.random()) * 0.01
        return {
            "scrape_start": at + late,
            "scrape_end": at + late + 0.003 + float(self._random.random()) * 0.002,
            "running": self.running,
            "waiting": self.waiting,
            "kv_blocks_total": float(BLOCKS),
            "kv_blocks_used": used,
            "kv_usage": used / BLOCKS,
            "preemptions_total": self.preempted,
            "prompt_tokens_total": self.prompt,
            "generation_tokens_total": self.output,
            "prefix_cache_hits_total": float(self.prompt // 3),
            "prefix_cache_queries_total": self.prompt,
            "requests_finished_total": self.finished,
            "max_num_seqs": float(SLOTS),
            "first_token_seconds_total": float(self.sums[0]),
            "first_tokens_total": self.finished,
            "queue_seconds_total": float(self.sums[3]),
            "queued_requests_total": self.finished,
            "e2el_seconds_total": float(self.sums[2]),
            "e2el_requests_total": self.finished,
        }

    def series(self, at: float, *, replica: int | None) -> SeriesScrape:
        """Return the scrape of the further series; the names every five minutes."""
        values = np.concatenate([np.cumsum(self.buckets, axis=1).ravel(), self.sums, np.arange(float(OTHERS))])
        names = "\n".join(
            (
                *(f"vllm:{name}_seconds_bucket{{le={bound:g}}}" for name in HISTOGRAMS for bound in (*BOUNDS, np.inf)),
                *(f"vllm:{name}_seconds_sum" for name in HISTOGRAMS),
                *(f"vllm:other_{number}" for number in range(OTHERS)),
            )
        )
        return SeriesScrape(
            at=at, names=names if at % 300 < 1 else None, numbers=pack_numbers(values.tolist()), replica=replica
        )


def facts_of(urls: tuple[str, ...] = ()) -> EngineFacts:
    """Return what is known about a server, or about several at these URLs."""
    return EngineFacts(name="vllm", title="vLLM", model="modelled", replica_urls=urls, max_num_seqs=SLOTS)


def transaction(number: int, servers: list[ModelledServer]) -> TickTransaction:
    """Return what a watch records in a tick: each server is read once a second."""
    end = (number + 1) * TICK_SECONDS
    for each in servers:
        each.step(end)
    whole = number % 4 == 0
    several = len(servers) > 1
    series = [each.series(end - 0.1, replica=index if several else None) for index, each in enumerate(servers) if whole]
    if not several:
        sample = EngineSample(**servers[0].fields(end - 0.1)) if whole else servers[0].newest
        servers[0].newest = sample
        return TickTransaction(
            tick=Tick(client=ClientTick(index=number), engine=sample),
            engine_samples=[sample] if whole and sample is not None else [],
            engine_series=series,
        )
    replicas = [ReplicaSample(replica=n, **each.fields(end - 0.1)) for n, each in enumerate(servers)] if whole else []
    sums = {name: sum(each.fields(0.0)[name] for each in servers) for name in servers[0].fields(0.0)}
    read = number // 4 * 4 * TICK_SECONDS + 0.15
    merged = EngineSample(
        **{**sums, "kv_usage": sums["kv_usage"] / len(servers), "scrape_start": read, "scrape_end": read}
    )
    changes = [
        ReplicaChange(
            at=0.1,
            replica=n,
            name=f"gpu{n}",
            url=f"http://gpu{n}:8000",
            state=ReplicaState.ATTACHED,
            engine=facts_text(facts_of()),
        )
        for n in range(len(servers) if number == 0 else 0)
    ]
    return TickTransaction(
        tick=Tick(client=ClientTick(index=number), engine=merged),
        engine_samples=[merged] if whole else [],
        replica_samples=replicas,
        replica_changes=changes,
        engine_series=series,
    )


def write(path: Path, *, servers: int, hours: float, keep: float | None, merged: bool) -> list[float]:
    """Record a watch, and return the time of each commit in seconds."""
    config = RunConfig(stages=(), watch=WatchConfig(several=servers > 1, keep=keep))
    urls = tuple(f"http://gpu{n}:8000" for n in range(servers)) if servers > 1 else ()
    facts = facts_of(urls)
    recorder = Recorder.create(path, RunHeader(config=config, anchor=ClockAnchor.take(), engine=facts))
    if merged:
        recorder.downsample(keep=keep)
    modelled = [ModelledServer(seed) for seed in range(servers)]
    ticks, taken, clock = round(hours * 3600 / TICK_SECONDS), [], MonotonicClock()
    for number in range(ticks):
        batch = transaction(number, modelled)
        before = clock.now()
        recorder.commit(batch)
        taken.append(clock.now() - before)
    recorder.close(RunEnd(at=ticks * TICK_SECONDS, exit_code=0, reason=""))
    return taken


def measure(code: str, *arguments: str) -> str:
    """Return the medians of seconds, processor time and memory of processes that read the recording, start to end."""
    found = []
    for _ in range(_TIMES):
        clock = MonotonicClock()
        command = (sys.executable, "-c", code + _USED, *arguments)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        found.append([clock.now(), *map(float, done.stderr.split()[-2:])])
    seconds, processor, memory = np.median(found, axis=0)
    return f"{seconds:.1f} s, processor {processor:.1f} s, {memory / 1024:.0f} MB of memory"


def measure_all(path: Path, folder: Path) -> None:
    """Print what the commands need that read all of a recording; their files are written to a folder."""
    again, page = folder / "again.servetop", folder / "page.html"
    shutil.copyfile(path, again)
    print(f"summary: {measure(_COMMAND, 'summary', str(path))}", flush=True)
    print(f"story: {measure(_COMMAND, 'summary', str(path), '--story')}", flush=True)
    print(f"replay, to the first screen: {measure(_REPLAY, str(path))}", flush=True)
    print(f"report: {measure(_COMMAND, 'report', str(path), '--output', str(page))}", flush=True)
    print(f"compare, with a second one: {measure(_COMMAND, 'compare', str(path), str(again))}", flush=True)
    print(f"verify: {measure(_COMMAND, 'verify', str(path))}", flush=True)


def main() -> None:
    """Write a watch, and measure what reads it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--servers", type=int, default=1)
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--keep", type=float, default=None, help="hours")
    parser.add_argument("--all", action="store_true", help="merge nothing")
    parser.add_argument("--file", type=Path, default=None)
    parser.add_argument("--open", type=Path, default=None, help="measure the commands on this recording alone")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.open is not None:
            measure_all(options.open, Path(folder))
            return
        path = options.file or Path(folder) / "watch.servetop"
        keep = None if options.keep is None else options.keep * 3600
        taken = write(path, servers=options.servers, hours=options.hours, keep=keep, merged=not options.all)
        p50, p99, most = np.percentile(taken, [50, 99, 100]) * 1e3
        size = path.stat().st_size / 1e6
        daily = size / options.servers / (options.hours / 24)
        print(f"{options.hours:g} h of {options.servers} servers: {size:.1f} MB, {daily:.1f} MB a day and server")
        print(f"commits: p50 {p50:.2f} ms, p99 {p99:.2f} ms, at most {most:.0f} ms")
        measure_all(path, Path(folder))


if __name__ == "__main__":
    main()
