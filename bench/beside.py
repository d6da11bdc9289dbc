"""Compares clients that share the machine with a real vLLM on the CPU: how far is TTFT from the engine's own?

    python bench/beside.py [--runs 3] [--seconds 20] [--client servetop …] [--load 4 closed8] [--busy no yes]

Every client sends the same load in turn to one server: 64 tokens in, 64 out, 4 requests/s, almost evenly spaced so that
short runs have equal rates, or a closed loop of 8, on a machine that is otherwise quiet, and beside two busy loops in
sessions of their own. Requests of equal length in a closed loop end together, so that the next eight arrive together;
in mixed8, the same loop, lengths are drawn from 32 to 96 tokens. The engine's means are the increases of its own
histograms over exactly that run, so client - engine is what HTTP, the client and its wait for a processor add;
bare_client.py is the floor. Needs the vLLM of `make integration`; vLLM's benchmark in Rust is fetched (rust_bench.py).
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rust_bench import VLLM, rust_bench

TOKENS = 64
EVEN = 100.0
"""Burstiness of the open loop."""
START_SECONDS = 240.0
MODEL = VLLM / "tiny-llama"
SETTINGS = (
    *(
        "--load-format",
        "dummy",
        "--dtype",
        "float32",
        "--max-model-len",
        "256",
        "--block-size",
        "32",
        "--num-gpu-blocks-override",
        "256",
    ),
    *("--max-num-seqs", "32", "--enforce-eager", "--no-enable-prefix-caching"),
)
QUIET = {"HF_HUB_OFFLINE": "1", "DO_NOT_TRACK": "1", "VLLM_NO_USAGE_STATS": "1", "VLLM_CPU_KVCACHE_SPACE": "1"}
BUSY = (sys.executable, "-c", "while True: pass")
HISTOGRAMS = {
    "ttft": "vllm:time_to_first_token_seconds",
    "tpot": "vllm:request_time_per_output_token_seconds",
    "e2el": "vllm:e2e_request_latency_seconds",
}
COLUMNS = ("engine", "client", "excess", "p99", "lag", "slip", "tpot", "e2el", "rate")
HEAD = (
    f"{'':<22}{'TTFT, engine':>13}{'client':>9}{'excess':>9}{'p99':>9}{'lag p99':>9}{'slip p99':>10}"
    f"{'engine TPOT':>13}{'E2EL':>9}{'req/s':>8}"
)
WIDTHS = (13, 9, 9, 9, 9, 10, 13, 9, 8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """An open loop of some requests per second, or a closed loop of some requests in flight."""

    title: str
    rate: float | None = None
    concurrency: int | None = None
    spread: float = 0.0
    """Lengths are drawn uniformly within ± this fraction of TOKENS."""

    def options(self, seconds: float, *, timed: bool) -> list[str]:
        """Return the load as options; a client without a time limit gets about as many requests."""
        load = [] if self.rate is None else ["--request-rate", f"{self.rate:g}", "--burstiness", f"{EVEN:g}"]
        load += [] if self.concurrency is None else ["--max-concurrency", str(self.concurrency)]
        load += ["--random-range-ratio", f"{self.spread:g}"] if self.spread else []
        count = round(seconds * (self.rate or 5.0 * (self.concurrency or 1)))
        return [*load, *(["--duration", f"{seconds:g}"] if timed else ["--num-prompts", str(count)])]


class ClientError(Exception):
    """A client ended with an error: its figures are left out."""


LOADS = {
    "4": Load(title="4 requests/s", rate=4.0),
    "closed8": Load(title="closed loop of 8", concurrency=8),
    "mixed8": Load(title="closed loop of 8, 32 to 96 tokens", concurrency=8, spread=0.5),
}
Client = Callable[[str, Load, float], "dict[str, float]"]
"""Runs a load against a URL for some seconds; returns its values in ms."""


def servetop(url: str, load: Load, seconds: float) -> dict[str, float]:
    """Run the whole command."""
    argv = [sys.executable, "-m", "servetop", "--engine", "vllm", "--url", url, "--headless", "--json", "--no-record"]
    argv += ["--input-len", str(TOKENS), "--output-len", str(TOKENS), "--ignore-eos"]
    argv += load.options(seconds, timed=True)
    found = json.loads(_output(argv, good=(0, 99)))
    trust = found["trust"]
    return {
        "client": found["mean_ttft_ms"],
        "p99": found["p99_ttft_ms"],
        "lag": trust["loop_lag_p99_ms"],
        "slip": trust["slip_p99_ms"],
        "rate": found["request_throughput"],
    }


def bare(*options: str) -> Client:
    """Run bare_client.py, the floor: what no client can do without."""

    def client(url: str, load: Load, seconds: float) -> dict[str, float]:
        argv = [sys.executable, str(Path(__file__).with_name("bare_client.py")), "--port", url.rpartition(":")[2]]
        argv += ["--model", str(MODEL), "--tokens", str(TOKENS), "--seconds", f"{seconds:g}", *options]
        argv += ["--spread", f"{load.spread:g}"]
        argv += ["--rate", str(load.rate)] if load.rate else ["--streams", str(load.concurrency)]
        found: dict[str, float] = json.loads(_output(argv))
        return found

    return client


def vllm_bench(program: Path) -> Client:
    """Run `vllm bench serve`, in Python or in Rust."""

    def client(url: str, load: Load, seconds: float) -> dict[str, float]:
        with tempfile.TemporaryDirectory() as folder:
            argv = [str(program), "bench", "serve", "--backend", "openai", "--model", str(MODEL), "--base-url", url]
            argv += ["--endpoint", "/v1/completions", "--tokenizer", str(MODEL), "--dataset-name", "random"]
            argv += ["--random-input-len", str(TOKENS), "--random-output-len", str(TOKENS), "--ignore-eos"]
            argv += ["--save-result", "--result-dir", folder, "--result-filename", "found.json"]
            argv += ["--percentile-metrics", "ttft", "--metric-percentiles", "99", *load.options(seconds, timed=False)]
            _output(argv)
            found = json.loads((Path(folder) / "found.json").read_text())
        return {"client": found["mean_ttft_ms"], "p99": found["p99_ttft_ms"], "rate": found["request_throughput"]}

    return client


def _output(argv: Sequence[str], *, good: Sequence[int] = (0,)) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env={**os.environ, **QUIET})
    if done.returncode not in good:
        reason = next((line for line in reversed(done.stderr.splitlines()) if line.strip()), "no output")
        raise ClientError(f"exit code {done.returncode}, {reason.strip()}")
    return done.stdout


def totals(url: str) -> dict[str, tuple[float, float]]:
    """Return the sum in ms and the count of each of the engine's histograms."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=10) as response:
        lines = response.read().decode().splitlines()

    def value(name: str) -> float:
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{name}{{"))

    return {key: (1e3 * value(f"{name}_sum"), value(f"{name}_count")) for key, name in HISTOGRAMS.items()}


def run_once(client: Client, url: str, *, load: Load, seconds: float) -> dict[str, float]:
    """Run a client, and add the engine's means over its run."""
    before = totals(url)
    found = client(url, load, seconds)
    after = totals(url)
    means = {key: (after[key][0] - before[key][0]) / max(after[key][1] - before[key][1], 1.0) for key in HISTOGRAMS}
    own = {"engine": means["ttft"], "tpot": means["tpot"], "e2el": means["e2el"]}
    return {**found, **own, "excess": found["client"] - means["ttft"]}


@contextmanager
def server() -> Iterator[str]:
    """Start vLLM on a free port and yield its URL."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    argv = [str(VLLM / "bin" / "vllm"), "serve", str(MODEL), "--host", "127.0.0.1", "--port", str(port), *SETTINGS]
    with tempfile.TemporaryFile() as log, programs([argv], log=log.fileno()) as (process,):
        until = time.monotonic() + START_SECONDS
        while not answers(url):
            if process.poll() is not None or time.monotonic() > until:
                log.seek(0)
                raise SystemExit(f"vLLM did not start: {log.read()[-2000:].decode(errors='replace')}")
            time.sleep(0.5)
        yield url


@contextmanager
def programs(
    commands: Sequence[Sequence[str]], *, log: int = subprocess.DEVNULL
) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Run programs in sessions of their own, and end them."""
    environment = {**os.environ, **QUIET}
    started = [
        subprocess.Popen(argv, stdout=log, stderr=log, start_new_session=True, env=environment) for argv in commands
    ]
    try:
        yield started
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.wait(60)


def answers(url: str) -> bool:
    """Whether the server is ready."""
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=2) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def clients(wanted: Sequence[str]) -> Mapping[str, Client]:
    """Return the available clients by name."""
    found: dict[str, Client] = {
        "servetop": servetop,
        "bare sockets": bare("--real-time"),
        "bare, ordinary class": bare(),
        "vLLM bench (Python)": vllm_bench(VLLM / "bin" / "vllm"),
    }
    if not wanted or "vLLM bench (Rust)" in wanted:
        program = rust_bench()
        found |= {} if program is None else {"vLLM bench (Rust)": vllm_bench(program)}
    return {name: client for name, client in found.items() if not wanted or name in wanted}


def measure(url: str, load: Load, *, seconds: float, runs: int, wanted: Sequence[str]) -> None:
    """Run all clients in turn, and print the medians of each."""
    each = clients(wanted)
    found: dict[str, list[dict[str, float]]] = {name: [] for name in each}
    for number in range(runs):
        for name in list(found)[:: 1 if number % 2 == 0 else -1]:
            try:
                found[name].append(run_once(each[name], url, load=load, seconds=seconds))
            except ClientError as error:
                print(f"LEFT OUT: {name} ({error})")
                del found[name]
    for name, results in found.items():
        values = [
            statistics.median(one[column] for one in results) if column in results[0] else None for column in COLUMNS
        ]
        cells = ("–" if value is None else f"{value:.2f}" for value in values)
        print(
            f"{name:<22}" + "".join(f"{cell:>{width}}" for cell, width in zip(cells, WIDTHS, strict=True)), flush=True
        )


def main() -> None:
    """Measure each load on the quiet machine and beside busy loops."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--client", nargs="*", default=[])
    parser.add_argument("--load", nargs="*", default=list(LOADS), choices=list(LOADS))
    parser.add_argument("--busy", nargs="*", default=["no", "yes"], choices=["no", "yes"])
    wanted = parser.parse_args()
    if not (VLLM / "bin" / "vllm").exists():
        print("LEFT OUT: no vLLM on this machine; make integration installs it")
        return
    with server() as url:
        servetop(url, LOADS["4"], 3.0)  # the first requests compile
        for busy in wanted.busy:
            with programs([BUSY, BUSY] if busy == "yes" else []):
                for load in wanted.load:
                    where = "beside two busy loops" if busy == "yes" else "quiet"
                    title = f"{LOADS[load].title}, {where}"
                    print(f"{title}; means and percentiles in ms, medians of {wanted.runs} runs\n{HEAD}")
                    measure(url, LOADS[load], seconds=wanted.seconds, runs=wanted.runs, wanted=wanted.client)
                    print()


if __name__ == "__main__":
    main()
