"""The rules, each a function of one stage's summary; docs/how-to/gate.md lists them with sources.

The trust meter (analysis/trust/trust.py) measures most values and defines most limits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from servetop.analysis.checks.check_outcome import CheckOutcome
from servetop.analysis.checks.rule_result import TAIL_FROM, Bearing
from servetop.analysis.checks.stage_figures import StageFigures
from servetop.analysis.comparison.estimate import CONFIDENCE
from servetop.analysis.summary.trust_metrics import NOT_IN_FILE
from servetop.analysis.trust.cache_check import TOLERANCE as HIT_RATE_TOLERANCE
from servetop.analysis.trust.steady_state import RAMPED, shows_trend
from servetop.analysis.trust.trust import AGREEMENT_LIMIT, SLIP_LIMIT
from servetop.analysis.trust.trust_verdict import TrustVerdict
from servetop.core.events import TokenSource
from servetop.core.text.counted import counted
from servetop.core.units import MS_PER_S

FAILURE_LIMIT = 0.01
"""Fraction of failed requests from which on the latencies are those of the requests that survived."""
RATE_TOLERANCE = 0.10
"""Fraction by which more requests may wait for a token than are in flight: gaps may begin before the stage."""

_LOWER_TAIL = 90.0


def requests_for_percentile(percentile: float) -> int:
    """Return the fewest requests with which the 95 % interval of a percentile has an upper end: 368 for p99.

    The largest of n independent values exceeds the p-quantile with probability 1 - pⁿ, which has to be 97.5 % (Wilks,
    Annals of Mathematical Statistics 12, 1941). Values that depend on each other need more.
    """
    return math.ceil(math.log((1 - CONFIDENCE) / 2) / math.log(percentile / 100))


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What a rule found in one stage."""

    state: CheckOutcome
    text: str
    value: float | None = None
    limit: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HonestyRule:
    """One rule."""

    name: str
    bearing: Bearing
    judge: Callable[[StageFigures], Judged]


def _client_bound(stage: StageFigures) -> Judged:
    trust = stage.trust
    slip, limit = trust.slip_p99_ms, SLIP_LIMIT * MS_PER_S
    if trust.verdict == TrustVerdict.CLIENT_BOUND:
        text = f"the client was the bottleneck: {', '.join(trust.reasons)}; use --workers, or a faster client"
        return Judged(state=CheckOutcome.BROKEN, value=slip, limit=limit, text=text)
    if slip is None:
        return _unknown("when requests were sent is unknown: look at the failures of the run")
    return Judged(
        state=CheckOutcome.KEPT, value=slip, limit=limit, text=f"requests were sent {slip:.3g} ms late at p99"
    )


def _failures(stage: StageFigures) -> Judged:
    ended = stage.completed + stage.failed
    if not ended:
        return _unknown("no request ended: measure longer than a request takes")
    share = stage.failed / ended
    text = f"{stage.failed:,} of {counted(ended, 'request')} failed"
    if share <= FAILURE_LIMIT:
        return Judged(state=CheckOutcome.KEPT, value=share, limit=FAILURE_LIMIT, text=text)
    text += ", and the latencies are those of the others: see the failures in servetop summary"
    return Judged(state=CheckOutcome.BROKEN, value=share, limit=FAILURE_LIMIT, text=text)


def _littles_law(stage: StageFigures) -> Judged:
    error, limit = stage.trust.littles_law_error, stage.trust.littles_law_limit
    if error is None:
        return _not_applicable("the engine exports no number of requests")
    if not stage.compared_completed:
        return _not_applicable("no request succeeded")
    if limit >= 1:
        return _not_applicable("too few requests were in flight to compare")
    text = f"the engine held {error:+.1%} requests compared with the client"
    if abs(error) <= limit:
        return Judged(state=CheckOutcome.KEPT, value=error, limit=limit, text=text)
    text += ": look for other clients of the server, a proxy that queues, or replicas without metrics"
    return Judged(state=CheckOutcome.BROKEN, value=error, limit=limit, text=text)


def _token_counts(stage: StageFigures) -> Judged:
    error = stage.trust.token_error
    if error is None:
        return _not_applicable("the engine exports no number of tokens, or generated too few to compare")
    text = f"the engine counted {error:+.1%} output tokens compared with the client"
    if abs(error) <= AGREEMENT_LIMIT:
        return Judged(state=CheckOutcome.KEPT, value=error, limit=AGREEMENT_LIMIT, text=text)
    text += ": look for other clients of the server, or give --tokenizer if it sends no usage"
    return Judged(state=CheckOutcome.BROKEN, value=error, limit=AGREEMENT_LIMIT, text=text)


def _token_source(stage: StageFigures) -> Judged:
    trust = stage.trust
    agrees = trust.token_error is not None and abs(trust.token_error) <= AGREEMENT_LIMIT
    match trust.token_source:
        case None if trust.slip_basis == NOT_IN_FILE:
            return _not_applicable("the file that the run was imported from does not say how tokens were counted")
        case None:
            return _not_applicable("no request succeeded")
        case TokenSource.DISPUTED:
            text = "the server's usage contradicts its streams or the tokens requested: report it to the server"
            return Judged(state=CheckOutcome.BROKEN, text=text)
        case TokenSource.CHUNKS | TokenSource.ESTIMATE if not agrees:
            text = "tokens are counted events, each of which may have several: give --tokenizer"
            return Judged(state=CheckOutcome.BROKEN, text=text)
        case source:
            return Judged(state=CheckOutcome.KEPT, text=f"tokens are counted by {source}")


def _token_rate(stage: StageFigures) -> Judged:
    """Tokens per second times the seconds per token are the requests that wait for one: at most those in flight.

    Little's law (Operations Research 9, 1961) for tokens: throughput ≤ concurrency / TPOT.
    """
    generating, in_flight = stage.generating, stage.in_flight
    if generating is None or in_flight is None:
        return _not_applicable("no gaps between tokens, or less than 10 s of them")
    limit = in_flight * (1 + RATE_TOLERANCE)
    text = f"tokens per second × seconds per token are {generating:.3g} requests, of {in_flight:.3g} in flight"
    if generating <= limit:
        return Judged(state=CheckOutcome.KEPT, value=generating, limit=limit, text=text)
    text += ": times or counts of the tokens are wrong; check the clock of the client, and servetop verify"
    return Judged(state=CheckOutcome.BROKEN, value=generating, limit=limit, text=text)


def too_few_samples(completed: int, percentile: float) -> str:
    """Return why a percentile of this many requests has no upper bound, and what to do; empty if it has one."""
    needed = requests_for_percentile(percentile)
    if completed >= needed:
        return ""
    gives, lower = "gives" if completed == 1 else "give", "p90" if percentile > _LOWER_TAIL else "p50"
    of = f"a p{percentile:g} without an upper bound"
    return f"{counted(completed, 'request')} {gives} {of}: measure at least {needed}, or use {lower}"


def _p99_samples(stage: StageFigures) -> Judged:
    count = stage.compared_completed
    if not count:
        return _not_applicable("no request succeeded")
    needed = float(requests_for_percentile(TAIL_FROM))
    if few := too_few_samples(count, TAIL_FROM):
        return Judged(state=CheckOutcome.BROKEN, value=float(count), limit=needed, text=few)
    return Judged(state=CheckOutcome.KEPT, value=float(count), limit=needed, text=counted(count, "request"))


def _steady(stage: StageFigures) -> Judged:
    if stage.steady_seconds is not None:
        return Judged(
            state=CheckOutcome.KEPT, value=stage.steady_seconds, text=f"steady for {stage.steady_seconds:.1f} s"
        )
    reason = stage.unsteady
    if reason == RAMPED:
        return _not_applicable(reason)
    if shows_trend(reason):
        text = f"{reason}: the figures depend on how long the load lasts; lower it or measure longer"
        return Judged(state=CheckOutcome.BROKEN, text=text)
    return _unknown(reason)


def _prefix_cache(stage: StageFigures) -> Judged:
    check = stage.cache
    if math.isnan(check.hit_rate):
        known = f"; at least {check.at_least:.1%} by the times to first token" if check.at_least > 0 else ""
        return _not_applicable(f"the engine exports no hits of its prefix cache{known}")
    if math.isnan(check.ideal):
        text = f"{check.hit_rate:.1%} of the prompt tokens were cached; what the workload implies is unknown"
        return _not_applicable(text)
    limit = check.ideal + max(HIT_RATE_TOLERANCE, check.slack)
    if check.reason:
        text = f"{check.reason}; use --prefix-cache cold or warm, or enlarge the cache"
        return Judged(state=CheckOutcome.BROKEN, value=check.hit_rate, limit=limit, text=text)
    text = f"{check.hit_rate:.1%} of the prompt tokens were cached, {check.ideal:.1%} by the workload"
    return Judged(state=CheckOutcome.KEPT, value=check.hit_rate, limit=limit, text=text)


def _unknown(text: str) -> Judged:
    return Judged(state=CheckOutcome.CANNOT_TELL, text=text)


def _not_applicable(text: str) -> Judged:
    return Judged(state=CheckOutcome.NOT_APPLICABLE, text=text)


RULES: tuple[HonestyRule, ...] = (
    HonestyRule(name="client-bound", bearing=Bearing.FIGURES, judge=_client_bound),
    HonestyRule(name="failures", bearing=Bearing.FIGURES, judge=_failures),
    HonestyRule(name="littles-law", bearing=Bearing.FIGURES, judge=_littles_law),
    HonestyRule(name="prefix-cache", bearing=Bearing.FIGURES, judge=_prefix_cache),
    HonestyRule(name="token-counts", bearing=Bearing.TOKENS, judge=_token_counts),
    HonestyRule(name="token-source", bearing=Bearing.TOKENS, judge=_token_source),
    HonestyRule(name="token-rate", bearing=Bearing.TOKENS, judge=_token_rate),
    HonestyRule(name="p99-samples", bearing=Bearing.TAILS, judge=_p99_samples),
    HonestyRule(name="steady", bearing=Bearing.NONE, judge=_steady),
)
"""In the order of the report."""
