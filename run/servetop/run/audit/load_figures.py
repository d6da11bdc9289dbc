"""The figures of a load from its requests: the same computation for what a client saw and for what the server saw."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from servetop.analysis.statistics.percentiles import Distribution
from servetop.analysis.summary.in_flight_timeline import InFlightTimeline
from servetop.core.arrays import FloatArray
from servetop.core.events import RequestRecord, RequestStatus
from servetop.core.units import MS_PER_S
from servetop.recordings.format.request_codec import last_known_at

LATENCIES = ("ttft", "tpot", "itl", "e2el")
PERCENTILES = (50, 90, 99)
TIMED = frozenset(("arrival_rate", "mean_concurrency", "max_concurrent_requests", "duration"))
"""Figures that need the times at which a client sent its requests."""
OVER_TIME = frozenset(("request_throughput", "output_throughput", "total_token_throughput"))
"""Figures that need the duration of a load."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestError:
    """How much higher than the server's the client's times of the same requests are, in milliseconds."""

    name: str
    """`ttft`, `tpot`, `e2el`, or `arrival`: how long after its time of sending, by the client, a request arrived."""
    mean: float | None
    p50: float | None
    p90: float | None
    p99: float | None


def load_figures(requests: Sequence[RequestRecord]) -> Mapping[str, float | None]:
    """Return the figures by name, with those of `vllm bench serve` where it has them; None if not defined.

    Latencies (milliseconds) and tokens are those of successful requests, rates and concurrency (per second, requests)
    those of all; throughput is over the time from the first request to the last byte.
    """
    ok = [each for each in requests if each.status is RequestStatus.OK]
    sent, ended = (np.array([*map(each, requests)], float) for each in (_sent, last_known_at))
    duration = float(ended.max() - sent.min()) if sent.size else 0.0
    prompt, output = sum(each.prompt_tokens for each in ok), sum(each.output_tokens for each in ok)
    arriving = float(sent.max() - sent.min()) if sent.size else 0.0
    return {
        "requests": len(requests),
        "completed": len(ok),
        "failed": sum(each.status not in (RequestStatus.OK, RequestStatus.CANCELLED) for each in requests),
        "cancelled": sum(each.status is RequestStatus.CANCELLED for each in requests),
        "duration": duration,
        "arrival_rate": _ratio(sent.size - 1, arriving),
        "request_throughput": _ratio(len(ok), duration),
        "mean_concurrency": _ratio(float((ended - sent).sum()), duration),
        "max_concurrent_requests": InFlightTimeline.of(sent, ended).highest,
        "total_input_tokens": prompt,
        "total_output_tokens": output,
        "output_throughput": _ratio(output, duration),
        "total_token_throughput": _ratio(prompt + output, duration),
        **dict(_latencies(ok)),
    }


def request_errors(
    truth: Sequence[RequestRecord], client: Sequence[RequestRecord], *, shift: float | None
) -> tuple[RequestError, ...]:
    """Return the errors of a client request by request, of those that succeeded for both; both in the same order.

    `shift` (seconds) converts the client's times to the server's clock; with it, `arrival` is how long after its
    time of sending, by the client, a request arrived, failed ones included.
    """
    pairs = [
        (server, own)
        for server, own in zip(truth, client, strict=True)
        if server.status is own.status is RequestStatus.OK
    ]
    errors = [
        _error(name, (_difference(getattr(own, name), getattr(server, name)) for server, own in pairs))
        for name in ("ttft", "tpot", "e2el")
    ]
    if shift is not None:
        late = (_sent(server) - _sent(own) - shift for server, own in zip(truth, client, strict=True))
        errors.insert(0, _error("arrival", late))
    return tuple(errors)


def _sent(request: RequestRecord) -> float:
    return request.due if request.sent is None else request.sent


def _ratio(amount: float, seconds: float) -> float | None:
    return amount / seconds if seconds > 0 else None


def _difference(left: float | None, right: float | None) -> float:
    return math.nan if left is None or right is None else left - right


def _latencies(ok: Sequence[RequestRecord]) -> Iterator[tuple[str, float | None]]:
    for name in LATENCIES:
        pool = _token_gaps(ok) if name == "itl" else _known(getattr(each, name) for each in ok)
        yield f"mean_{name}_ms", _ms(pool.mean)
        for q in PERCENTILES:
            yield f"p{q}_{name}_ms", _ms(pool.percentile(q))


def _known(values: Iterable[float | None]) -> Distribution:
    return Distribution.of(np.array([math.nan if each is None else each for each in values], float))


def _token_gaps(ok: Sequence[RequestRecord]) -> Distribution:
    """Return the gaps between chunks divided by the tokens of the later chunk, once for each of these tokens."""
    gaps: list[FloatArray] = [np.empty(0)]
    weights = [np.empty(0, np.int64)]
    for each in ok:
        if each.chunk_sizes_known and each.chunk_times.size > 1:
            tokens = np.asarray(each.chunk_tokens[1:], np.int64)
            gaps.append(np.diff(each.chunk_times) / np.maximum(tokens, 1))
            weights.append(tokens)
    return Distribution.of(np.concatenate(gaps), weights=np.concatenate(weights))


def _error(name: str, seconds: Iterable[float]) -> RequestError:
    pool = _known(seconds)
    p50, p90, p99 = (_ms(pool.percentile(q)) for q in PERCENTILES)
    return RequestError(name=name, mean=_ms(pool.mean), p50=p50, p90=p90, p99=p99)


def _ms(seconds: float) -> float | None:
    return seconds * MS_PER_S if math.isfinite(seconds) else None
