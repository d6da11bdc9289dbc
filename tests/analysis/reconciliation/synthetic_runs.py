"""Seeded runs of two clients that measure one server, whose latencies follow a known rule."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from servetop.analysis.reconciliation.client_rows import ClientRows
from servetop.analysis.reconciliation.load_terms import overlapping
from servetop.analysis.reconciliation.waterfall import ReconciledRun
from servetop.core.events import RequestRecord, RequestStatus

LIFETIME = 1.0
"""About what a request takes, in seconds: the server's rule counts others in flight for this time."""


@dataclass(frozen=True, kw_only=True)
class PlantedRun:
    """A run at a rate; each field after `count` plants one cause."""

    seed: int
    count: int = 600
    rate: float = 8.0
    prompts: tuple[int, int] = (100, 200)
    outputs: tuple[int, int] = (40, 60)
    cached: float = 0.5
    """Share of a prompt that is cached, on average."""
    slower: float = 0.0
    """Seconds that the server takes longer for the first token, for no reason that a client sees."""
    client_delay: float = 0.0
    """Seconds by which the client reads each chunk late."""
    cold: int = 0
    """First requests that take a second longer."""
    tokens_a_chunk: int = 1
    tool: str = "servetop"


def planted(plan: PlantedRun, *, truth: bool = False) -> ReconciledRun:
    """Return the run of a plan, with the server's times of each request on demand."""
    random = np.random.default_rng(plan.seed)
    sent = np.cumsum(random.exponential(1 / plan.rate, plan.count))
    load = overlapping(sent, LIFETIME)
    served, seen = [], []
    for number in range(plan.count):
        request = _request(plan, number, float(sent[number]), float(load[number]), random)
        served.append(request)
        seen.append(_late(request, plan.client_delay))
    rows = ClientRows.of(seen)
    return ReconciledRun(tool=plan.tool, rows=rows.with_server(ClientRows.of(served)) if truth else rows, closed=False)


def _request(plan: PlantedRun, number: int, sent: float, load: float, random: np.random.Generator) -> RequestRecord:
    """One request: its first token depends on load, uncached prompt and noise, the later ones on load."""
    prompt = int(random.integers(plan.prompts[0], plan.prompts[1] + 1))
    output = int(random.integers(plan.outputs[0], plan.outputs[1] + 1)) // plan.tokens_a_chunk * plan.tokens_a_chunk
    cached = int(prompt * np.clip(random.normal(plan.cached, 0.15), 0, 1))
    ttft = 0.05 + 0.001 * (prompt - cached) + 0.004 * load + plan.slower + float(random.normal(0, 0.003))
    ttft += 1.0 if number < plan.cold else 0.0
    gap = (0.015 + 0.0004 * load + float(random.normal(0, 0.0003))) * plan.tokens_a_chunk
    times = np.asarray(sent + ttft + gap * np.arange(output // plan.tokens_a_chunk), float)
    return RequestRecord(
        id=number, stage=0, due=sent, sent=sent, first_token_at=float(times[0]), done_at=float(times[-1]),
        prompt_tokens=prompt, output_tokens=output, cached_tokens=cached, status=RequestStatus.OK,
        chunk_times=times, chunk_tokens=np.full(times.shape, plan.tokens_a_chunk, np.int64),
    )  # fmt: skip


def _late(request: RequestRecord, delay: float) -> RequestRecord:
    first, done = (None if each is None else each + delay for each in (request.first_token_at, request.done_at))
    return replace(request, first_token_at=first, done_at=done, chunk_times=request.chunk_times + delay)
