"""What the sender saw since the last tick: counters and durations, folded into one ClientTick."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np

from servetop.core.chunk_codec import chunk_sizes_known
from servetop.core.events import RequestRecord, RequestStatus
from servetop.core.histogram import LogHistogram
from servetop.core.interfaces.dialect import ServerTiming
from servetop.core.tick import ClientTick, LoadGauges
from servetop.core.units import US_PER_S
from servetop.loadgen.request.request_state import RequestState

BEAT_SECONDS = 0.020
"""Period of the heartbeat whose lateness is the event loop's lag."""

_MEASURED = ("ttft", "ttft_due", "ttfot", "tpot", "e2el", "input_len", "output_len", "slip", "client_wait", "loop_lag",
             "server_queue", "server_prefill", "itl_uncertainty")  # fmt: skip
_MOST_UNSIZED = 1_000_000
"""Gaps that wait for the first answer to end."""
_ENDINGS = {
    RequestStatus.OK: "ok",
    RequestStatus.ERROR: "errors",
    RequestStatus.TIMEOUT: "timeouts",
    RequestStatus.CANCELLED: "cancelled",
    RequestStatus.TRUNCATED: "truncated",
}


class TickBuilder:
    """Collects until `close`. Token counts that the server corrects at an answer's end are set right in that tick."""

    def __init__(self) -> None:
        self._reasons = False
        """Some request has: from then on, when the answer itself began is counted of all."""
        self._per_chunk: int | None = None
        """Tokens, by the last answer whose chunks did not say; 0: they cannot be known, and there is no ITL; None: no
        such answer has ended yet."""
        self._unsized_us = array("I")
        """Gaps before chunks of which the first answer will tell how many tokens they brought."""
        self._start_anew()

    def _start_anew(self, prompt_tokens: int = 0, output_tokens: int = 0) -> None:
        self.due = 0
        self._sent = 0
        self._endings = dict.fromkeys(RequestStatus, 0)
        self._prompt_tokens = prompt_tokens
        self._output_tokens = output_tokens
        self._chunks = 0
        self._stamped = 0
        self._values = {name: array("d") for name in _MEASURED}
        self._gaps_us = array("I")
        self._gap_tokens = array("I")

    def progressed(self, exchange: RequestState) -> None:
        """Count the chunks that came since the last call for this exchange."""
        chunks = exchange.chunks
        if (doubts := chunks.take_doubts()) is not None:
            self._values["itl_uncertainty"] += doubts
        start, stop = exchange.taken_in, len(chunks)
        if start == stop:
            return
        exchange.taken_in = stop
        self._chunks += stop - start
        self._stamped += (stop - start) * exchange.stamped
        if start == 0:
            self._first_token(exchange)
            start = 1
        gaps, counts = chunks.since(start)
        self._output_tokens += len(gaps) if counts is None else sum(counts)
        if counts is not None or _is_told(exchange):
            self._gaps_us += gaps
            self._gap_tokens += array("I", [1]) * len(gaps) if counts is None else counts
        elif self._per_chunk is None:
            self._unsized_us += gaps[: _MOST_UNSIZED - len(self._unsized_us)]
        else:
            self._add_gaps(gaps, self._per_chunk)

    def _add_gaps(self, gaps: array[int], tokens: int) -> None:
        if tokens:
            self._gaps_us += gaps
            self._gap_tokens += array("I", [tokens]) * len(gaps)

    def _first_token(self, exchange: RequestState) -> None:
        self._output_tokens += exchange.chunks.count(0)
        exchange.prompt_tokens_counted = exchange.prompt_tokens
        self._prompt_tokens += exchange.prompt_tokens
        at = exchange.first_token_at
        if at is None:
            return
        self._values["ttft_due"].append(at - exchange.due_at)
        if exchange.sent is not None:
            self._values["ttft"].append(at - exchange.sent)

    def went_out(self, exchange: RequestState) -> None:
        """Count a request that has just been sent."""
        if exchange.sent is None:
            return
        self._sent += 1
        waited = "client_wait" if exchange.held_back else "slip"
        self._values[waited].append(max(0.0, exchange.sent - exchange.due_at))

    def ended(self, exchange: RequestState, record: RequestRecord) -> None:
        """Count a finished request, and what its final token counts add to those of its chunks."""
        self._endings[record.status] += 1
        if exchange.taken_in:
            self._prompt_tokens += record.prompt_tokens - exchange.prompt_tokens_counted
        self._output_tokens += record.output_tokens - exchange.chunks.tokens
        if record.status is RequestStatus.OK:
            self._learn_sizes(record)
            self._values["input_len"].append(record.prompt_tokens)
            self._values["output_len"].append(record.output_tokens)
            self._reasons = self._reasons or bool(record.reasoning_tokens)
            if self._reasons and record.ttfot is not None:
                self._values["ttfot"].append(record.ttfot)
        if exchange.timing is not None:
            self._timed(exchange.timing)
        if record.status is RequestStatus.OK and record.e2el is not None:
            self._values["e2el"].append(record.e2el)
            if record.tpot is not None:
                self._values["tpot"].append(record.tpot)

    def _learn_sizes(self, record: RequestRecord) -> None:
        """What an ended answer tells of the chunks of those under way, which do not say how many tokens they bring."""
        if record.chunk_tokens.size > 1:
            known = chunk_sizes_known(record.output_tokens, int(record.chunk_tokens.sum()))
            self._per_chunk = int(record.chunk_tokens[0]) if known else 0
            self._add_gaps(self._unsized_us, self._per_chunk)
            self._unsized_us = array("I")

    def _timed(self, timing: ServerTiming) -> None:
        if timing.queue is not None:
            self._values["server_queue"].append(timing.queue)
        if timing.prefill is not None:
            self._values["server_prefill"].append(timing.prefill)

    def beat(self, lateness: float) -> None:
        """A heartbeat came so late (seconds); the beats that it delayed count too, each with its own lateness."""
        while lateness > 0:
            self._values["loop_lag"].append(lateness)
            lateness -= BEAT_SECONDS

    def close(self, index: int, *, gauges: LoadGauges, cpu_seconds: float) -> ClientTick:
        """The tick of interval `index`; counting starts anew. A correction below zero waits for the next tick."""
        histograms: dict[str, Any] = {
            name: LogHistogram.of(np.array(values, dtype=np.float64)) for name, values in self._values.items()
        }
        tokens = np.array(self._gap_tokens, dtype=np.int64)
        gaps = np.array(self._gaps_us, dtype=np.float64) / US_PER_S
        histograms["itl"] = LogHistogram.of(gaps / tokens, weights=tokens)
        endings: dict[str, Any] = {name: self._endings[status] for status, name in _ENDINGS.items()}
        prompt_tokens, output_tokens = max(0, self._prompt_tokens), max(0, self._output_tokens)
        tick = ClientTick(
            index=index,
            gauges=gauges,
            due=self.due,
            sent=self._sent,
            prompt_tokens=prompt_tokens,
            output_tokens=output_tokens,
            chunks=self._chunks,
            stamped=self._stamped,
            cpu_seconds=cpu_seconds,
            **endings,
            **histograms,
        )
        self._start_anew(self._prompt_tokens - prompt_tokens, self._output_tokens - output_tokens)
        return tick


def _is_told(exchange: RequestState) -> bool:
    """The server counts the tokens as they come, and each chunk had one."""
    told = exchange.output_tokens
    return told is not None and bool(chunk_sizes_known(told, exchange.chunks.tokens))
