"""Memory of a request in flight, without its connection."""

from __future__ import annotations

import gc
import tracemalloc

from servetop.core.interfaces.dialect import Prompt
from servetop.engines.dialects.dialect_registry import dialect_for
from servetop.loadgen.request.request_state import PreparedRequest, RequestState
from servetop.workload.stages.stage_run import Due

DIALECT = dialect_for("completions", model="tiny-llama", continuous_usage=False)
TOGETHER = 10
LIST_SLOT = 8
"""Bytes of a list entry."""


def event(number: int, text: str) -> bytes:
    return (
        b'data: {"id":"cmpl-%08x","object":"text_completion","created":1795252819,"model":"tiny-llama","choices":'
        b'[{"index":0,"text":"%b","logprobs":null,"finish_reason":null,"stop_reason":null}],"usage":null}\n\n'
    ) % (number, text.encode())


def in_flight(number: int, chunks: int) -> RequestState:
    """Return a request that has received a number of chunks, the regular ones deferred and flushed together."""
    prompt = Prompt(text="x" * 2000, input_tokens=500, output_tokens=chunks)
    prepared = PreparedRequest(prompt, b"{}" * 1000)
    request = RequestState(number, Due(0, float(number)), prepared=prepared, dialect=DIALECT, limited=False)
    request.mark_sent(number + 0.1)
    request.headers_received(200, number + 0.2)
    for first in range(2):
        request.body_received(event(number, f" {first}"), number + 0.3)
    for first in range(2, chunks, TOGETHER):
        request.deferred.extend((b" w", number + 0.01 * later) for later in range(first + 40, first + 40 + TOGETHER))
        request.flush()
    return request


def kept_bytes(chunks: int, requests: int = 200) -> float:
    """Return the bytes that one request uses, on average over `requests`."""
    in_flight(0, chunks)  # what all streams share is learned
    gc.collect()
    tracemalloc.start()
    try:
        kept = [in_flight(1000 + number, chunks) for number in range(requests)]
        gc.collect()
        assert {len(each.chunks) for each in kept} == {chunks}
        return tracemalloc.get_traced_memory()[0] / requests - LIST_SLOT
    finally:
        tracemalloc.stop()


def test_a_request_in_flight_uses_about_one_kibibyte_and_four_bytes_per_chunk() -> None:
    few, many = (min(kept_bytes(chunks) for _ in range(3)) for chunks in (12, 412))  # other threads allocate too
    assert few - 4 * 12 <= 1136
    assert many - 4 * 412 <= 1136 + 64
