"""Open loops in which each load is kept for a minute: one whose latencies follow the load, and one queue."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np

from servetop.run.search.search_evidence import Evidence, LoadObjective, Probe
from tests.judgement.curve_server import Curve, CurveServer

LARGEST = 20.0
LOADS = tuple(LARGEST * part for part in (0.5, 0.8, 0.9, 0.95, 1.05, 1.1, 0.98, 1.02))
CURVE = Curve(
    kind="linear", limit=2.0, share=0.9, largest=LARGEST, concurrency=False, spread=0.2, start=0.4, bend=0.0
)  # fmt: skip
OBJECTIVE: LoadObjective = CURVE.objective


def without_queue(*, loads: tuple[float, ...] = LOADS, seed: int = 3) -> Evidence:
    """Requests of which none affects another."""
    server = CurveServer(CURVE, noise=0.01, seed=seed)
    probes = [server.keep(load, 60.0) for load in loads]
    return server.evidence(probes, [OBJECTIVE])


def with_queue(*, loads: tuple[float, ...] = LOADS, seed: int = 3) -> Evidence:
    """Requests that one worker serves one after the other; it completes 22 of them per second."""
    random, served, free = Random(f"queue {seed}"), [], 0.0
    probes = [Probe(load=load, begin=60.0 * place, end=60.0 * (place + 1)) for place, load in enumerate(loads)]
    for probe in probes:
        at = probe.begin + random.expovariate(probe.load)
        while at < probe.end:
            free = max(free, at) + random.expovariate(1.1 * LARGEST)
            served.append((at, free))
            at += random.expovariate(probe.load)
    due, done = np.array(served).T
    took = np.minimum(done, probes[-1].end) - due
    done = np.where(done <= probes[-1].end, done, np.nan)
    missed = took > CURVE.limit
    like = without_queue(loads=loads)
    return replace(
        like,
        due=due,
        done=done,
        counted=((missed | ~np.isnan(done)).astype(np.float64),),
        missed=(missed.astype(np.float64),),
        levels=(np.log(np.maximum(took, 1e-6) / CURVE.limit),),
    )
