"""The requests of a result of vLLM's or SGLang's benchmark, whose lists have one value per request."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from servetop.core.errors import UsageError
from servetop.core.events import RequestRecord, RequestStatus
from servetop.run.imports.number_lists import counts_in, seconds_in


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class BenchRow:
    """One request of a result: times in seconds since it was sent."""

    prompt_tokens: int
    output_tokens: int
    ttft: float
    """0 if there was no token, or only an empty one."""
    gaps: Sequence[float]
    latency: float | None
    """None if unknown, as of a request that failed."""
    error: str
    ok: bool

    def record(self, number: int, *, due: float, sent: float) -> RequestRecord:
        """Return the request as servetop records it."""
        first = sent + self.ttft
        chunks = first + np.concatenate([[0.0], np.cumsum(self.gaps)]) if self.ttft else np.empty(0)
        done = None if self.latency is None else sent + self.latency
        if done is not None:
            chunks = np.minimum(chunks, done)  # gaps that were rounded one by one may add up to more
        return RequestRecord(
            id=number,
            stage=0,
            due=due,
            sent=sent,
            first_token_at=first if chunks.size else None,
            done_at=done,
            prompt_tokens=self.prompt_tokens,
            output_tokens=self.output_tokens if self.ok else chunks.size,
            status=RequestStatus.OK if self.ok else RequestStatus.ERROR,
            error=None if self.ok else self.error,
            chunk_times=chunks,
            chunk_tokens=np.broadcast_to(np.int64(1), chunks.shape),
        )


def bench_rows(lists: Mapping[str, list[Any]]) -> Iterator[BenchRow]:
    """Yield the requests of a result; UsageError for a value that makes no sense.

    Needed are `ttfts`, `itls`, `input_lens` and `output_lens`; `latencies` and `errors` may be absent.
    """
    size = len(lists["ttfts"])
    prompts, outputs = counts_in(lists["input_lens"], "input_lens"), counts_in(lists["output_lens"], "output_lens")
    ttfts = seconds_in(lists["ttfts"], "ttfts")
    latencies = seconds_in(lists["latencies"], "latencies") if "latencies" in lists else None
    for number in range(size):
        gaps = lists["itls"][number]
        if not isinstance(gaps, list):
            raise UsageError(f"itls of request {number + 1} is not a list: is the file damaged?")
        error = _last_line(lists["errors"][number]) if "errors" in lists else ""
        ok = not error and (outputs[number] > 0 or ttfts[number] > 0)
        gaps = seconds_in(gaps, f"itls of request {number + 1}: gap")
        latency = ttfts[number] + sum(gaps) if latencies is None else latencies[number]
        if ok and latency < ttfts[number]:
            raise UsageError(f"latencies of request {number + 1} is below its ttfts: is the file damaged?")
        yield BenchRow(
            prompt_tokens=prompts[number],
            output_tokens=outputs[number],
            ttft=ttfts[number],
            gaps=gaps,
            latency=latency if ok or (latencies is not None and latency > 0) else None,
            error=error or "failed, without a reason in the file",
            ok=ok,
        )


def _last_line(error: Any) -> str:
    """Return the last line of an error, which is the exception of a Python traceback, and the first cause in Rust."""
    lines = str(error or "").strip().splitlines()
    return lines[-1].strip().removeprefix("Caused by: ") if lines else ""
