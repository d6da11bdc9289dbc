"""Folds what the client of a virtual run sees into ticks, as the load generator's `TickBuilder` does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from servetop.analysis.trust.objectives import meets_objectives
from servetop.core.events import RequestRecord, RequestStatus
from servetop.core.histogram import LogHistogram
from servetop.core.tick import COUNTED_AS, HISTOGRAMS, ClientTick, LoadGauges
from servetop.core.units import US_PER_S
from servetop.simulator.virtual_run.sent_request import SentRequest


class ClientTickFold:
    """Collects until `build`; every token is a chunk of its own, whose arrival the kernel stamps.

    `goodput` has the objectives by metric, in seconds. With `observed` False the run is one of another client, of which
    is unknown how late it sent, and which clock its arrivals have.
    """

    def __init__(self, goodput: Mapping[str, float] | None = None, *, observed: bool = True) -> None:
        self._goodput = goodput or {}
        self._observed = observed
        self._reset()

    def _reset(self) -> None:
        self._counts: Counter[str] = Counter()
        self._values: dict[str, list[float]] = {name: [] for name in HISTOGRAMS}
        self._gaps: list[float] = []
        self._gap_counts: list[int] = []

    def due(self) -> None:
        """Count a request that is due."""
        self._counts["due"] += 1

    def sent(self, request: SentRequest) -> None:
        """Count a request that was sent, and how late."""
        self._counts["sent"] += 1
        if request.limited or self._observed:
            self._values["client_wait" if request.limited else "slip"].append(request.sent - request.due)

    def first_token(self, request: SentRequest, at: float) -> None:
        """Count the first token of a request, and its prompt."""
        self._counts["prompt_tokens"] += request.request.prompt_tokens
        self._values["ttft"].append(at - request.sent)
        self._values["ttft_due"].append(at - request.due)

    def chunks(self, count: int) -> None:
        """Count tokens that arrived."""
        for name in ("output_tokens", "chunks", *(("stamped",) if self._observed else ())):
            self._counts[name] += count

    def gap(self, seconds: float, count: int) -> None:
        """Count `count` equal gaps between tokens, in whole microseconds as chunk times are recorded."""
        self._gaps.append(round(seconds * US_PER_S) / US_PER_S)
        self._gap_counts.append(count)

    def ended(self, record: RequestRecord) -> None:
        """Count a request that ended."""
        self._counts[COUNTED_AS[record.status]] += 1
        self._counts["good"] += meets_objectives(record, self._goodput)
        self._counts["good_due"] += meets_objectives(record, self._goodput, from_due=True)
        if record.status is not RequestStatus.OK:
            return
        self._values["input_len"].append(record.prompt_tokens)
        self._values["output_len"].append(record.output_tokens)
        if record.e2el is not None:
            self._values["e2el"].append(record.e2el)
        if record.tpot is not None:
            self._values["tpot"].append(record.tpot)

    def beat(self, lateness: float) -> None:
        """Count a heartbeat of the event loop."""
        self._values["loop_lag"].append(lateness)

    def build(self, index: int, *, gauges: LoadGauges, cpu_seconds: float) -> ClientTick:
        """Return tick `index` and start the next one."""
        histograms: dict[str, Any] = {name: LogHistogram.of(values) for name, values in self._values.items() if values}
        if self._gaps:
            weights = np.array(self._gap_counts, dtype=np.int64)
            histograms["itl"] = LogHistogram.of(self._gaps, weights=weights)
        unset = () if self._goodput else ("good", "good_due")
        counts: dict[str, Any] = {name: count for name, count in self._counts.items() if name not in unset}
        if self._goodput:
            counts = {"good": 0, "good_due": 0, **counts}
        self._reset()
        return ClientTick(index=index, gauges=gauges, cpu_seconds=cpu_seconds, **counts, **histograms)
