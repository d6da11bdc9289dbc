"""A real vLLM on the CPU, with so few KV blocks that it must preempt."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.harness import Servetop
from tests.integration.harness import ENVIRONMENT, SCARCE, WITHOUT_CACHE, Vllm, home_of, vllm_server, warm_up
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


@pytest.fixture(scope="session")
def scarce_vllm(vllm: Vllm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a running vLLM that servetop did not start."""
    settings = ("--max-num-seqs", "32", "--enable-per-request-metrics")
    blocks = ("--num-gpu-blocks-override", str(SCARCE), WITHOUT_CACHE)
    with started(vllm_server(vllm, *settings, *blocks), tmp_path_factory.mktemp("vllm") / "log") as engine:
        warm_up(engine.url, tmp_path_factory.mktemp("warm-up"))
        yield engine.url
