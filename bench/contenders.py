"""The clients that bench/duel.py compares, behind one call: run a load against a server and return the measurements."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
from client import Shape, pinned, play
from rust_bench import VLLM, tokenizer

from servetop.core.arrays import FloatArray
from servetop.recordings.read.reader import RecordingReader

HERE = Path(__file__).parent
SAMPLE_SECONDS = 0.05
CPUS = (1, 0) if (os.cpu_count() or 1) > 1 else (None, None)
"""CPU of the server, and of the client."""
REQUESTS = {"paced256": 768, "closed256": 4000}
"""Number of requests of a client without a time limit."""


@dataclass(frozen=True)
class Seen:
    """A client's own measurements of a run; arrays it does not report are empty."""

    ttft: Mapping[str, float]
    """Seconds by request id."""
    gaps: FloatArray
    slips: FloatArray
    cpu_seconds: float | None = None
    """None: use the value measured from outside."""
    whole_seconds: float | None = None
    """CPU time of the whole process tree from start to end."""


Contender = Callable[[Shape, int, str], "tuple[Seen, CpuWatch | None]"]
"""Runs a load, given with its name, against the server at a port."""


class CpuWatch:
    """CPU time of a process tree over time, sampled twenty times per second in a thread."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._tree = psutil.Process(process.pid)
        self._instants: list[float] = []
        self._used: list[float] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._over.wait(SAMPLE_SECONDS):
            try:
                each = [member.cpu_times() for member in (self._tree, *self._tree.children(recursive=True))]
            except psutil.Error:
                continue
            self._instants.append(time.perf_counter())
            self._used.append(sum(member.user + member.system for member in each))

    def stop(self) -> None:
        """Stop sampling."""
        self._over.set()
        self._thread.join()

    def between(self, start: float, until: float) -> float:
        """CPU time in seconds."""
        return float(np.interp(until, self._instants, self._used) - np.interp(start, self._instants, self._used))


def servetop(shape: Shape, port: int, name: str) -> tuple[Seen, CpuWatch | None]:  # noqa: ARG001
    """Run servetop's sender."""
    total, records, origin_ns, _ = asyncio.run(play(shape, port, CPUS[1]))
    ttft = {f"servetop-{origin_ns:x}-0-{each.id}": each.ttft for each in records if each.ttft is not None}
    slips = [each.sent - each.due for each in records if each.sent is not None]
    gaps = np.concatenate([np.diff(each.chunk_times) for each in records])
    return Seen(ttft, gaps, np.array(slips), total.cpu_seconds), None


def command(engine: str) -> Contender:
    """Run `servetop --headless --json` as users do; all its processes count, from start to end."""

    def bout(shape: Shape, port: int, name: str) -> tuple[Seen, CpuWatch]:  # noqa: ARG001
        with tempfile.TemporaryDirectory() as folder:
            recording = Path(folder) / "run.servetop"
            argv = [sys.executable, "-m", "servetop", "--engine", engine, "--url", f"http://127.0.0.1:{port}"]
            argv += ["--model", "tiny-llama", "--input-len", "16", "--output-len", str(shape.tokens), "--ignore-eos"]
            argv += ["--headless", "--json", "--record", str(recording), *_load_options(shape)]
            _, watch, used = _run(argv, good=(0, 99))
            reader = RecordingReader.open(recording)
            origin_ns, records = reader.header.anchor.origin_ns, list(reader.requests(0.0, float("inf")))
            reader.close()
        ttft = {
            f"servetop-{origin_ns:x}-{each.worker}-{each.id}": each.ttft for each in records if each.ttft is not None
        }
        slips = np.array([each.sent - each.due for each in records if each.sent is not None])
        return Seen(ttft, np.concatenate([np.diff(each.chunk_times) for each in records]), slips, None, used), watch

    return bout


def _load_options(shape: Shape) -> Sequence[str]:
    """Return the load as servetop's options."""
    stage, options = shape.stage, []
    if stage.request_rate != float("inf"):
        options += ["--request-rate", f"{stage.request_rate:g}"]
    if stage.max_concurrency:
        options += ["--max-concurrency", str(stage.max_concurrency)]
    if stage.num_prompts:
        options += ["--num-prompts", str(stage.num_prompts)]
    if stage.duration:
        options += ["--duration", f"{stage.duration:g}"]
    return options


def reference(stack: str) -> Contender:
    """Run bench/reference_client.py with a library."""

    def bout(shape: Shape, port: int, name: str) -> tuple[Seen, CpuWatch]:
        argv = [sys.executable, str(HERE / "reference_client.py"), stack, "--port", str(port)]
        argv += ["--tokens", str(shape.tokens)]
        if (rate := shape.stage.request_rate) != float("inf"):
            argv += ["--rate", str(rate), "--requests", str(round(rate * (shape.stage.duration or 1.0)))]
        elif shape.stage.duration:
            argv += ["--seconds", str(shape.stage.duration)]
        else:
            argv += ["--requests", str(REQUESTS[name])]
        out, watch, used = _run(argv)
        seen = json.loads(out)
        gaps = np.concatenate([each["gaps"] for each in seen])
        slips = np.array([each["sent"] - each["due"] for each in seen])
        return Seen({each["id"]: each["first"] - each["sent"] for each in seen}, gaps, slips, None, used), watch

    return bout


def in_c(program: Path) -> Contender:
    """Run bench/sseserver/ccli.c: epoll without JSON, a lower bound. It sends no ids and keeps only percentiles."""

    def bout(shape: Shape, port: int, name: str) -> tuple[Seen, CpuWatch]:
        argv = [str(program), "--port", str(port), "--tokens", str(shape.tokens)]
        if (rate := shape.stage.request_rate) != float("inf"):
            argv += ["--rate", str(rate), "--requests", str(round(rate * (shape.stage.duration or 1.0)))]
        else:
            argv += ["--concurrency", str(shape.stage.max_concurrency), "--requests", str(REQUESTS[name])]
        out, watch, used = _run(argv)
        found = json.loads(out)
        p99 = {key: np.array([found[f"{key}_ms"]["p99"] * 1e-3]) for key in ("ttft", "itl", "slip")}
        return Seen({"": float(p99["ttft"][0])}, p99["itl"], p99["slip"], None, used), watch

    return bout


def vllm_bench(program: Path) -> Contender:
    """Run `vllm bench serve`, in Python or in Rust."""

    def bout(shape: Shape, port: int, name: str) -> tuple[Seen, CpuWatch]:
        with tempfile.TemporaryDirectory() as folder:
            argv = [str(program), "bench", "serve", "--backend", "openai", "--model", "tiny-llama"]
            argv += ["--base-url", f"http://127.0.0.1:{port}", "--endpoint", "/v1/completions"]
            made = VLLM / "tiny-llama"  # that in Python needs more than the file that is written here
            argv += ["--tokenizer", str(made if made.exists() else tokenizer(Path(folder)))]
            argv += ["--dataset-name", "random", "--random-input-len", "16"]
            argv += ["--random-output-len", str(shape.tokens), "--ignore-eos", "--request-id-prefix", "vllm-"]
            argv += ["--save-result", "--save-detailed", "--result-dir", folder, "--result-filename", "found.json"]
            if (rate := shape.stage.request_rate) != float("inf"):
                argv += ["--request-rate", str(rate), "--num-prompts", str(round(rate * (shape.stage.duration or 1.0)))]
            else:
                argv += ["--max-concurrency", str(shape.stage.max_concurrency), "--num-prompts", str(REQUESTS[name])]
            _, watch, used = _run(argv)
            found = json.loads((Path(folder) / "found.json").read_text())
        ttft = {f"vllm-{number}": each for number, each in enumerate(found["ttfts"])}
        return Seen(ttft, np.concatenate(found["itls"]), np.array([]), None, used), watch

    return bout


def _run(argv: Sequence[str], *, good: Sequence[int] = (0,)) -> tuple[str, CpuWatch, float]:
    """Return its output, its CPU use over time and its total CPU time."""
    before = _children_seconds()
    process = subprocess.Popen(pinned(CPUS[1], argv), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    watch = CpuWatch(process)
    out, _ = process.communicate()
    watch.stop()
    if process.returncode not in good:
        raise SystemExit(f"{argv[0]} ended with exit code {process.returncode}")
    return out, watch, _children_seconds() - before


def _children_seconds() -> float:
    """CPU time of all descendant processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
