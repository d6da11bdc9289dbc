"""A simulated server of one dialect, and parsers of its responses."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from typing import Any

import httpx

from servetop.simulator.dialects.registry import server_dialect_class
from servetop.simulator.dialects.server_dialect import EmulationOptions
from servetop.simulator.scheduling.build import sim_spec
from servetop.simulator.serve import SimulatorServer
from tests.simulator.server_process import client_of

_VALUE = re.compile(r'="([^"]*)"')


def server_of(dialect: str, options: EmulationOptions | None = None, **settings: Any) -> SimulatorServer:
    """Llama-2-7b as `tiny`, 50 times as fast, by default with 100 KV blocks and a batch size of 8."""
    given = {"kv_blocks": 100, "max_num_seqs": 8, "time_scale": 0.02, **settings}
    spec = sim_spec("llama-2-7b", gpu="a100-40", engine=server_dialect_class(dialect).profile, settings=given)
    return SimulatorServer(spec, served_name="tiny", dialect=dialect, options=options)


@contextlib.contextmanager
def served(dialect: str, options: EmulationOptions | None = None, **settings: Any) -> Iterator[httpx.Client]:
    """A client of such a server."""
    with client_of(server_of(dialect, options, **settings)) as client:
        yield client


def events(response: httpx.Response, *, prefix: str = "data: ", done: bool = False) -> list[dict[str, Any]]:
    """The JSON of a stream's events; `done` is whether it must end with `[DONE]`."""
    assert response.headers["content-type"].startswith("text/event-stream")
    *blocks, rest = response.text.split("\n\n")
    assert rest == ""
    if done:
        assert blocks.pop() == "data: [DONE]"
    assert all(block.startswith(prefix + "{") for block in blocks)
    return [json.loads(block.removeprefix(prefix)) for block in blocks]


def samples(page: str) -> dict[str, float]:
    """Values by name and label values, such as `tgi_request_failure validation`, without buckets."""
    lines = [line.rpartition(" ") for line in page.splitlines() if not line.startswith("#") and 'le="' not in line]
    return {" ".join([series.partition("{")[0], *_VALUE.findall(series)]): float(value) for series, _, value in lines}


def names(page: str) -> dict[str, str]:
    """The types of a page's metrics by name, from its TYPE lines."""
    lines = [line.split() for line in page.splitlines() if line.startswith("# TYPE ")]
    return {line[2]: line[3] for line in lines}
