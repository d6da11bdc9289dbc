"""Fixtures of the simulator's tests."""

from collections.abc import Iterator

import httpx
import pytest

from servetop.core.clock import MonotonicClock
from servetop.simulator.scheduling.build import sim_spec
from servetop.simulator.serve import SimulatorServer
from tests.simulator.server_process import client_of


@pytest.fixture
def clock() -> MonotonicClock:
    return MonotonicClock()


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    """A client of a simulated vLLM 0.2.1 with 100 KV blocks, 50 times as fast as real time."""
    settings = {"kv_blocks": 100, "max_num_seqs": 8, "time_scale": 0.02}
    spec = sim_spec("llama-2-7b", gpu="a100-40", engine="vllm-0.2.1", settings=settings)
    with client_of(SimulatorServer(spec, served_name="tiny")) as client:
        yield client
