"""The inputs of the trust meter over a period, from raw rows; analysis/trust/trust.py evaluates them."""

from __future__ import annotations

import itertools
import math

import numpy as np

from servetop.analysis.columns.latencies import end_to_end_latencies, times_to_first_token
from servetop.analysis.columns.request_columns import TOKEN_SOURCES, RequestColumns
from servetop.analysis.columns.run_columns import Period, RunColumns
from servetop.analysis.summary.in_flight_timeline import InFlightTimeline
from servetop.analysis.summary.request_metrics import finite, span_of
from servetop.analysis.summary.trust_types import EngineTimesSummary, TrustSummary
from servetop.analysis.trust.cache_check import CacheCheck
from servetop.analysis.trust.consistency import EngineCounts, littles_law, token_error
from servetop.analysis.trust.engine_times import TOTALS, engine_times
from servetop.analysis.trust.trust import COUNT_LIMIT, Trust
from servetop.analysis.trust.trust_inputs import is_stamped, itl_uncertainty, limit_in_force
from servetop.core.arrays import BoolArray, FloatArray
from servetop.core.events import RequestStatus, TokenSource
from servetop.core.histogram import LogHistogram
from servetop.core.tick import worst_class
from servetop.core.units import MS_PER_S

NOT_IN_FILE = "none: the file that the run was imported from does not have it"
"""Where the slip of an imported run was measured."""


def trust_summary(
    run: RunColumns, requests: RequestColumns, *, timeline: InFlightTimeline, period: Period, cache: CacheCheck
) -> TrustSummary:
    """Return the trust meter's values over a period, and on which requests the slip was measured."""
    limited, imported = timeline.limited(requests, run), run.header.imported is not None
    free = np.empty(0) if imported else _free_slip(requests, limited)
    within = period.contains(run.tick_ends)
    engine = _engine_counts(run, period)
    law = littles_law(engine, timeline.in_flight(run, engine.times))
    lag = LogHistogram.merged(lag for lag, selected in zip(run.loop_lags, within, strict=True) if selected)
    trust = Trust(
        slip_p99=float(np.percentile(free, 99, overwrite_input=True)) if free.size else math.nan,
        ttft_p99=_ttft_p99(requests),
        loop_lag_p99=lag.percentile(99),
        stamped=is_stamped(float(run.stamped[within].sum()), float(run.chunks[within].sum())),
        late_share=math.nan if imported else late_share(run, requests, period),
        offered_rate=math.nan if imported else offered_rate(requests),
        sent_rate=sent_rate(requests),
        completed_rate=completed_rate(requests),
        refused_rate=refused_rate(requests),
        seconds=math.nan if np.isnan(requests.sent).any() else span_of_sending(requests),
        all_failed=bool(requests.status.size) and not requests.with_status(RequestStatus.OK).any(),
        limited=bool(limited.any() or (run.queued[within] > 0).any()),
        concurrency_limit=limit_in_force(run.limits[within], run.queued[within]),
        littles_law_error=law.error,
        in_flight=law.in_flight,
        foreign=law.foreign,
        token_error=token_error(engine, run.client_tokens),
        times=engine_times(engine, run.counted_times),
        sender_class=worst_class(itertools.compress(run.sender_classes, within)),
        itl_p99=requests.itl.percentile(99),
        itl_uncertainty_p99=_itl_uncertainty(run, within),
        guessed=share_of(requests, TokenSource.CHUNKS, TokenSource.ESTIMATE),
        imported=imported,
        disputed=share_of(requests, TokenSource.DISPUTED),
        output_share=output_share(requests),
        cache=cache,
    )
    basis = NOT_IN_FILE if imported else _basis(limited, free=free.size)
    return _trust_summary(trust, basis=basis, source=None if imported else token_source(requests))


def _free_slip(requests: RequestColumns, limited: BoolArray) -> FloatArray:
    """Return the slip in seconds of the sent requests that the concurrency limit did not delay."""
    slip = requests.sent - requests.due
    return slip[~limited & ~np.isnan(slip)]


def late_share(run: RunColumns, requests: RequestColumns, period: Period) -> float:
    """Return mean lateness / mean time from due to done, if the whole load is a closed loop; NaN for other loads."""
    stages = [each.change for each in run.stages if period.overlaps(each.period)]
    if not stages or not all(math.isinf(each.request_rate or 0.0) and each.max_concurrency for each in stages):
        return math.nan
    ended = ~np.isnan(requests.sent) & ~np.isnan(requests.done_at)
    duration = float(end_to_end_latencies(requests.due, requests.done_at)[ended].sum())
    return float((requests.sent - requests.due)[ended].sum()) / duration if duration > 0 else math.nan


def share_of(requests: RequestColumns, *sources: TokenSource) -> float:
    """Return the fraction of completed requests whose token counts have one of these sources; 0 without any."""
    ok = requests.with_status(RequestStatus.OK)
    codes = [TOKEN_SOURCES.index(source) for source in sources]
    return float(np.isin(requests.token_source[ok], codes).mean()) if ok.any() else 0.0


def output_share(requests: RequestColumns) -> float:
    """Return output tokens / demanded tokens of the completed requests that demanded any; NaN without them."""
    demanding = requests.with_status(RequestStatus.OK) & ~np.isnan(requests.required_tokens)
    required = float(requests.required_tokens[demanding].sum(dtype=np.float64))
    received = np.minimum(requests.output_tokens, requests.required_tokens)[demanding]
    return float(received.sum(dtype=np.float64)) / required if required > 0 else math.nan


def token_source(requests: RequestColumns) -> str | None:
    """Return the worst source of token counts that more than 1 % of the completed requests have; None without any."""
    ok = requests.with_status(RequestStatus.OK)
    sources = [source for source in TokenSource if share_of(requests, source) > COUNT_LIMIT] if ok.any() else []
    return str(sources[-1]) if sources else None


def offered_rate(requests: RequestColumns) -> float:
    """Return requests due per second: gaps between due times / their span; NaN without gaps, or if all are at once."""
    return _rate(requests.due.size - 1, np.ptp(requests.due) if requests.due.size else 0.0)


def sent_rate(requests: RequestColumns) -> float:
    """Return requests sent per second, over at least the span of due times, so that unsent requests reduce the rate."""
    sent = int((~np.isnan(requests.sent)).sum())
    if not sent:
        return 0.0 if requests.due.size else math.nan
    return _rate(sent - 1, span_of_sending(requests))


def refused_rate(requests: RequestColumns) -> float:
    """Return requests per second that failed before they were sent, over the same span as `sent_rate`."""
    ended = ~requests.with_status(RequestStatus.OK) & ~requests.with_status(RequestStatus.CANCELLED)
    refused = int((ended & np.isnan(requests.sent)).sum())
    return _rate(refused, span_of_sending(requests)) if refused else 0.0


def span_of_sending(requests: RequestColumns) -> float:
    """Return the seconds from the first request sent to the last one sent or due; NaN if none was sent."""
    first, last = np.fmin.reduce(requests.sent, initial=math.inf), np.fmax.reduce(requests.sent, initial=-math.inf)
    return float(max(last, requests.due.max()) - first) if math.isfinite(first) else math.nan


def completed_rate(requests: RequestColumns) -> float:
    """Return successful requests per second, from the first sent to the last done."""
    return _rate(int(requests.with_status(RequestStatus.OK).sum()), span_of(requests))


def _engine_counts(run: RunColumns, period: Period) -> EngineCounts:
    counts = EngineCounts(
        starts=run.scrape_starts,
        ends=run.scrape_ends,
        requests=run.engine["running"] + run.engine["waiting"],
        generated=run.engine["generation_tokens_total"],
        sums={name: run.engine[name] for pair in TOTALS.values() for name in pair},
    )
    return counts.part(period.contains(counts.times))


def _ttft_p99(requests: RequestColumns) -> float:
    ttft = times_to_first_token(requests.sent, requests.first_token_at)[~np.isnan(requests.first_token_at)]
    return float(np.percentile(ttft, 99, overwrite_input=True)) if ttft.size else math.nan


def _itl_uncertainty(run: RunColumns, within: BoolArray) -> float:
    uncertain = LogHistogram.merged(
        each for each, selected in zip(run.itl_uncertainties, within, strict=True) if selected
    )
    return itl_uncertainty(uncertain, float(run.chunks[within].sum()))


def _rate(amount: int, seconds: float) -> float:
    return amount / float(seconds) if amount > 0 and seconds > 0 else math.nan


def _basis(limited: BoolArray, *, free: int) -> str:
    """Describe the requests on which the slip was measured."""
    if not limited.any():
        return "all requests: the concurrency limit delayed none"
    return f"{free} requests that were due and sent while fewer than the limit were in flight"


def _trust_summary(trust: Trust, *, basis: str, source: str | None) -> TrustSummary:
    return TrustSummary(
        slip_p99_ms=finite(trust.slip_p99 * MS_PER_S),
        slip_basis=basis,
        loop_lag_p99_ms=finite(trust.loop_lag_p99 * MS_PER_S),
        stamped=trust.stamped,
        late_share=finite(trust.late_share),
        offered_rate=finite(trust.offered_rate),
        sent_rate=finite(trust.sent_rate),
        completed_rate=finite(trust.completed_rate),
        itl_uncertainty_p99_ms=finite(trust.itl_uncertainty_p99 * MS_PER_S),
        littles_law_error=finite(trust.littles_law_error),
        token_error=finite(trust.token_error),
        engine_times=EngineTimesSummary.of(trust.times),
        sender_class=None if trust.sender_class is None else str(trust.sender_class),
        held_back=trust.limited,
        littles_law_limit=trust.littles_law_limit,
        sent_exemption=trust.checks["sent_share"].exemption or None,
        verdict=str(trust.verdict),
        reasons=trust.reasons,
        compared=trust.compared,
        advice=trust.advice or None,
        token_source=source,
        output_share=finite(trust.output_share),
    )
