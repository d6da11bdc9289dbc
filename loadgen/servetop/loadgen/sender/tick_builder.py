"""Folds what a sender observed since the last tick, counters and durations, into one ClientTick."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import Any

import numpy as np

from servetop.analysis.trust.objectives import meets_objectives
from servetop.core.chunk_codec import UNSIZED_LIMIT, chunk_sizes_known
from servetop.core.events import RequestRecord, RequestStatus
from servetop.core.histogram import LogHistogram
from servetop.core.interfaces.dialect import ServerTiming
from servetop.core.tick import COUNTED_AS, ClientTick, LoadGauges
from servetop.core.units import US_PER_S
from servetop.loadgen.request.request_state import RequestState

BEAT_SECONDS = 0.020
"""Period of the heartbeat whose lateness is the event loop's lag."""

_DURATIONS = (
    "ttft",
    "ttft_due",
    "ttfot",
    "tpot",
    "e2el",
    "input_len",
    "output_len",
    "slip",
    "client_wait",
    "loop_lag",
    "server_queue",
    "server_prefill",
    "itl_uncertainty",
)
_MAX_UNSIZED = 1_000_000
"""Gaps that may wait for the first request to end."""


class TickBuilder:
    """Collects until `build`; token counts that the server corrects at a request's end are corrected in that tick."""

    def __init__(self, goodput: Mapping[str, float] | None = None) -> None:
        """Count the requests that meet all limits of `goodput` (seconds by metric), if there are any."""
        self._goodput = goodput or {}
        self._has_reasoning = False
        """Some request had reasoning: from then on the time to the first output token is counted for all."""
        self._per_chunk: int | None = None
        """Tokens per chunk as of the last request that ended, for requests whose chunks do not carry counts.

        0: unknown for too many requests, so there is no ITL; None: no request has ended yet.
        """
        self._sized_requests = self._unsized_requests = 0
        """Successful requests of several chunks, whose tokens are known or unknown."""
        self._unsized_us = array("I")
        """Gaps before chunks whose token counts will be known when the first request ends."""
        self._reset()

    def _reset(self, prompt_tokens: int = 0, output_tokens: int = 0) -> None:
        self.due = 0
        self._sent = 0
        self._statuses = dict.fromkeys(RequestStatus, 0)
        self._good = self._good_due = 0
        self._prompt_tokens = prompt_tokens
        self._output_tokens = output_tokens
        self._chunks = 0
        self._stamped = 0
        self._values = {name: array("d") for name in _DURATIONS}
        self._gaps_us = array("I")
        self._gap_tokens = array("I")

    def add_chunks(self, request: RequestState) -> None:
        """Count the chunks that arrived since the last call for this request."""
        chunks = request.chunks
        if (uncertainties := chunks.take_uncertainties()) is not None:
            self._values["itl_uncertainty"] += uncertainties
        start, stop = request.chunks_counted, len(chunks)
        if start == stop:
            return
        request.chunks_counted = stop
        self._chunks += stop - start
        self._stamped += (stop - start) * request.stamped
        if start == 0:
            self._add_first_token(request)
            start = 1
        gaps, counts = chunks.since(start)
        self._output_tokens += len(gaps) if counts is None else sum(counts)
        if counts is not None or _one_token_per_chunk(request):
            self._gaps_us += gaps
            self._gap_tokens += array("I", [1]) * len(gaps) if counts is None else counts
        elif self._per_chunk is None:
            self._unsized_us += gaps[: _MAX_UNSIZED - len(self._unsized_us)]
        else:
            self._add_gaps(gaps, self._per_chunk)

    def _add_gaps(self, gaps: array[int], tokens: int) -> None:
        if tokens:
            self._gaps_us += gaps
            self._gap_tokens += array("I", [tokens]) * len(gaps)

    def _add_first_token(self, request: RequestState) -> None:
        self._output_tokens += request.chunks.tokens_at(0)
        request.prompt_tokens_counted = request.prompt_tokens
        self._prompt_tokens += request.prompt_tokens
        at = request.first_token_at
        if at is None:
            return
        self._values["ttft_due"].append(at - request.due_at)
        if request.sent is not None:
            self._values["ttft"].append(at - request.sent)

    def add_sent(self, request: RequestState) -> None:
        """Count a request that has just been sent, and how late."""
        if request.sent is None:
            return
        self._sent += 1
        delay = "client_wait" if request.limited else "slip"
        self._values[delay].append(max(0.0, request.sent - request.due_at))

    def add_ended(self, request: RequestState, record: RequestRecord) -> None:
        """Count a request that has ended, and the difference between its final token counts and those of its chunks."""
        self._statuses[record.status] += 1
        if request.chunks_counted:
            self._prompt_tokens += record.prompt_tokens - request.prompt_tokens_counted
        self._output_tokens += record.output_tokens - request.chunks.tokens
        if self._goodput:
            self._good += meets_objectives(record, self._goodput)
            self._good_due += meets_objectives(record, self._goodput, from_due=True)
        if record.status is RequestStatus.OK:
            self._learn_chunk_size(record)
            self._values["input_len"].append(record.prompt_tokens)
            self._values["output_len"].append(record.output_tokens)
            self._has_reasoning = self._has_reasoning or bool(record.reasoning_tokens)
            if self._has_reasoning and record.ttfot is not None:
                self._values["ttfot"].append(record.ttfot)
        if request.timing is not None:
            self._add_server_timing(request.timing)
        if record.status is RequestStatus.OK and record.e2el is not None:
            self._values["e2el"].append(record.e2el)
            if record.tpot is not None:
                self._values["tpot"].append(record.tpot)

    def _learn_chunk_size(self, record: RequestRecord) -> None:
        """Learn from an ended request how many tokens a chunk holds, for requests in flight whose chunks do not say."""
        if record.chunk_tokens.size > 1:
            self._unsized_requests += not record.chunk_sizes_known
            self._sized_requests += record.chunk_sizes_known
            few = self._unsized_requests <= UNSIZED_LIMIT * (self._unsized_requests + self._sized_requests)
            if record.chunk_sizes_known or not few:
                self._per_chunk = int(record.chunk_tokens[1]) if few else 0
            self._add_gaps(self._unsized_us, self._per_chunk or 0)
            self._unsized_us = array("I")

    def _add_server_timing(self, timing: ServerTiming) -> None:
        if timing.queue is not None:
            self._values["server_queue"].append(timing.queue)
        if timing.prefill is not None:
            self._values["server_prefill"].append(timing.prefill)

    def add_lag(self, lateness: float) -> None:
        """Count a heartbeat's lateness (seconds); the beats it delayed count too, each with its own lateness."""
        while lateness > 0:
            self._values["loop_lag"].append(lateness)
            lateness -= BEAT_SECONDS

    def build(self, index: int, *, gauges: LoadGauges, cpu_seconds: float) -> ClientTick:
        """Return tick `index` and start the next one; a token count below zero is carried over to it."""
        histograms: dict[str, Any] = {
            name: LogHistogram.of(np.array(values, dtype=np.float64)) for name, values in self._values.items()
        }
        tokens = np.array(self._gap_tokens, dtype=np.int64)
        gaps = np.array(self._gaps_us, dtype=np.float64) / US_PER_S
        histograms["itl"] = LogHistogram.of(gaps / tokens, weights=tokens)
        statuses: dict[str, Any] = {name: self._statuses[status] for status, name in COUNTED_AS.items()}
        prompt_tokens, output_tokens = max(0, self._prompt_tokens), max(0, self._output_tokens)
        tick = ClientTick(
            index=index,
            gauges=gauges,
            due=self.due,
            sent=self._sent,
            good=self._good if self._goodput else None,
            good_due=self._good_due if self._goodput else None,
            prompt_tokens=prompt_tokens,
            output_tokens=output_tokens,
            chunks=self._chunks,
            stamped=self._stamped,
            cpu_seconds=cpu_seconds,
            **statuses,
            **histograms,
        )
        self._reset(self._prompt_tokens - prompt_tokens, self._output_tokens - output_tokens)
        return tick


def _one_token_per_chunk(request: RequestState) -> bool:
    """Whether the server's running count agrees with one token per chunk."""
    reported = request.output_tokens
    return reported is not None and bool(chunk_sizes_known(reported, request.chunks.tokens))
