"""A real vLLM on the CPU, with so few KV blocks that it must preempt."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.harness import Servetop, answers, wait_for
from tests.integration.harness import ENVIRONMENT, SCARCE_BLOCKS, Vllm, home_of
from tests.integration.real_engines import ENGINES, RealEngine, started


@pytest.fixture(scope="session")
def vllm() -> Vllm:
    return Vllm(home_of("vllm"))


@pytest.fixture(scope="session")
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealEngine]:
    """A running server that servetop did not start; `only` says which. One runs at a time, for all its tests."""
    name: str = request.param
    with started(ENGINES[name](home_of(name)), tmp_path_factory.mktemp("server") / "log") as engine:
        yield engine


@pytest.fixture
def servetop(tmp_path: Path) -> Servetop:
    return Servetop(tmp_path, ENVIRONMENT)


@pytest.fixture
def bare_llama_server(tmp_path: Path) -> Iterator[str]:
    """The URL of a llama-server that was started without --metrics."""
    engine = ENGINES["llama.cpp"](home_of("llama.cpp"))
    argv = tuple(word for word in engine.argv if word != "--metrics")
    with started(replace(engine, argv=argv), tmp_path / "log") as server:
        yield server.url


def warm_up(url: str, folder: Path) -> None:
    """vLLM's gauges move after a step, and its first ones take seconds: they would read as 0 requests meanwhile."""
    load = ("--max-concurrency", "24", "--num-prompts", "48", "--input-len", "12", "--output-len", "100")
    assert Servetop(folder, ENVIRONMENT)("--url", url, *load, "--json").summary["completed"] == 48


@pytest.fixture(scope="session")
def scarce_vllm(vllm: Vllm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a running vLLM that servetop did not start."""
    port, log = 8431, tmp_path_factory.mktemp("vllm") / "log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [
                *vllm.api_server.split(),
                "--model",
                vllm.model,
                "--port",
                str(port),
                "--host",
                "127.0.0.1",
                "--max-num-seqs",
                "32",
                "--enable-per-request-metrics",
                *SCARCE_BLOCKS,
            ],
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **ENVIRONMENT},
            start_new_session=True,
        )
    url = f"http://127.0.0.1:{port}"
    try:
        wait_for(lambda: process.poll() is not None or answers(f"{url}/health"), seconds=180, what="vLLM's start")
        assert process.poll() is None, log.read_text()[-3000:]
        warm_up(url, tmp_path_factory.mktemp("warm-up"))
        yield url
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
