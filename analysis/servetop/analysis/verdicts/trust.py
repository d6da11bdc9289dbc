"""The trust meter: whether the measurements can be trusted, given the client's performance and the counters.

The same rules apply to a live window, a stage, a steady window and a run; `live_trust` and the summary provide inputs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from servetop.analysis.verdicts.cache_check import CacheCheck
from servetop.core.arrays import FloatArray
from servetop.core.histogram import LogHistogram


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustCheck:
    """One value, its limit and the result."""

    value: float
    limit: float
    state: CheckState
    exemption: str = ""
    """Why the check does not apply; empty unless exempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """The values behind the verdict; NaN if unknown (no engine metrics, or nothing sent)."""

    slip_p99: float = math.nan
    """Seconds."""
    loop_lag_p99: float = math.nan
    """Seconds."""
    stamped: bool = False
    """Whether the kernel timestamps arrivals, so that reading them late does not change their times."""
    late_share: float = math.nan
    """Fraction by which late requests reduced the load of a closed loop; NaN for other loads."""
    offered_rate: float = math.nan
    sent_rate: float = math.nan
    completed_rate: float = math.nan
    refused_rate: float = 0.0
    """Requests per second that failed before they were sent, because the server accepted no connection."""
    seconds: float = math.nan
    """Time over which `sent_rate` was measured."""
    all_failed: bool = False
    """Whether requests ended and none succeeded."""
    limited: bool = False
    """Whether the concurrency limit queued requests at the client, so that fewer than offered were sent as intended."""
    concurrency_limit: int | None = None
    """The limit; None if it varied or is unknown."""
    littles_law_error: float = math.nan
    """(engine running + waiting) / client in flight - 1, from means over the same time."""
    in_flight: float = math.nan
    """Mean requests in flight at the client."""
    token_error: float = math.nan
    """Engine's generated tokens / client's tokens - 1, from `consistency.token_error`."""

    guessed: float = 0.0
    """Fraction of completed requests whose output tokens are counted chunks, each of which may have several tokens."""
    disputed: float = 0.0
    """Fraction of completed requests whose `usage` contradicts the stream or the requested tokens."""

    itl_p99: float = math.nan
    """Seconds."""
    itl_uncertainty_p99: float = math.nan
    """Seconds within which 99 % of the gaps between chunks are known, because chunks read together have one time."""

    cache: CacheCheck = CacheCheck()

    @property
    def reasons(self) -> tuple[str, ...]:
        """One phrase for each broken limit; empty if there is none."""
        phrases = [
            (self.all_failed, "no request succeeded, so nothing was measured"),
            (self._breaks("slip_p99"), f"requests sent {self.slip_p99 * 1e3:.0f} ms late at p99"),
            (self._breaks("late_share"), f"closed-loop requests sent late: {self.late_share:.0%} less load"),
            (self._breaks("loop_lag_p99"), f"client event loop lagged {self.loop_lag_p99 * 1e3:.0f} ms at p99"),
            (self._breaks("sent_share"), f"sent {self.sent_rate:.1f} of {self.offered_rate:.1f} req/s"),
            (
                self._breaks("littles_law"),
                f"engine holds {self.littles_law_error:+.0%} requests vs client",
            ),
            (
                abs(self.token_error) > AGREEMENT_LIMIT,
                f"engine counts {self.token_error:+.0%} tokens vs client",
            ),
            (
                self.guessed > COUNT_LIMIT and not abs(self.token_error) <= AGREEMENT_LIMIT,
                f"tokens of {self.guessed:.0%} of requests are counted events: the server sends no usage",
            ),
            (
                self._itl_uncertain,
                f"ITL p99 is uncertain by {self.itl_uncertainty_p99 * 1e3:.1f} ms: many events were read together",
            ),
            (
                self.disputed > COUNT_LIMIT,
                f"the usage of {self.disputed:.0%} of requests contradicts the stream or the tokens requested",
            ),
            (bool(self.cache.reason), self.cache.reason),
        ]
        return tuple(phrase for broken, phrase in phrases if broken)

    @property
    def _itl_uncertain(self) -> bool:
        return self.itl_uncertainty_p99 > max(ITL_UNCERTAINTY_LIMIT, ITL_UNCERTAINTY_SHARE * self.itl_p99)

    @property
    def checks(self) -> Mapping[str, TrustCheck]:
        """The checks `slip_p99` (`late_share` in a closed loop), `loop_lag_p99`, `sent_share`, `littles_law`, `tokens`.

        `slip_p99` and `loop_lag_p99` are in seconds, the others fractions.
        """
        share = self.sent_share
        late, quick = self.late_share, "short requests" if self.slip_p99 <= TURNAROUND else ""
        lag, stamped = self.loop_lag_p99, "kernel timestamps" if self.stamped else ""
        return {
            **(
                {"late_share": _check(late, LATE_SHARE_LIMIT, late > LATE_SHARE_LIMIT, exemption=quick)}
                if self.closed
                else {"slip_p99": _at_most(self.slip_p99, SLIP_LIMIT)}
            ),
            "loop_lag_p99": _check(lag, LOOP_LAG_LIMIT, lag > LOOP_LAG_LIMIT, exemption=stamped),
            "sent_share": _check(share, SENT_SHARE_LIMIT, share < SENT_SHARE_LIMIT, exemption=self._exemption),
            "littles_law": self._littles_law,
            "tokens": _at_most(self.token_error, AGREEMENT_LIMIT),
        }

    @property
    def _littles_law(self) -> TrustCheck:
        limit, error = self.littles_law_limit, self.littles_law_error
        few = "few in flight" if limit >= 1 else ""
        exemption = "none succeeded" if self.all_failed else few
        return _check(error, limit, abs(error) > limit or bool(exemption), exemption=exemption)

    @property
    def closed(self) -> bool:
        """Whether the whole load is a closed loop."""
        return not math.isnan(self.late_share)

    @property
    def littles_law_limit(self) -> float:
        """AGREEMENT_LIMIT, or more with few requests in flight, where one in transit is a large fraction."""
        return max(AGREEMENT_LIMIT, REQUESTS_IN_TRANSIT / self.in_flight) if self.in_flight > 0 else AGREEMENT_LIMIT

    @property
    def sent_share(self) -> float:
        """Sent / offered; NaN if nothing was offered."""
        return self.sent_rate / self.offered_rate if self.offered_rate > 0 else math.nan

    @property
    def _exemption(self) -> str:
        """Why fewer requests than were due are expected to be sent; empty if not expected."""
        if self.closed:
            return "closed loop"
        if self.limited:
            return (
                f"held back by limit {self.concurrency_limit}" if self.concurrency_limit else "held back by the limit"
            )
        if self.sent_rate + self.refused_rate >= SENT_SHARE_LIMIT * self.offered_rate:
            return "others refused"
        if self.seconds * (1 - self.sent_share) <= SLIP_LIMIT:
            return "too short to judge"
        return ""

    def _breaks(self, name: str) -> bool:
        check = self.checks.get(name)
        return check is not None and check.state is CheckState.BROKEN

    @property
    def verdict(self) -> TrustVerdict:
        """The verdict: client-bound takes precedence over suspect, because a slow client causes disagreements, too."""
        if math.isnan(self.slip_p99) and math.isnan(self.loop_lag_p99):
            return TrustVerdict.UNKNOWN
        if self.all_failed:
            return TrustVerdict.NO_FIGURES
        if any(map(self._breaks, ("slip_p99", "late_share", "loop_lag_p99", "sent_share"))):
            return TrustVerdict.CLIENT_BOUND
        return TrustVerdict.SUSPECT if self.reasons else TrustVerdict.OK


SLIP_LIMIT = 0.100
"""Maximum p99 of schedule slip in seconds; above it, the client did not keep its schedule."""
LOOP_LAG_LIMIT = 0.100
"""Maximum p99 of event-loop lag in seconds; above it, the loop was too busy to measure times accurately."""
LATE_SHARE_LIMIT = 0.03
"""Maximum lateness / time from due to done of a closed loop, where a request is due when the previous one ends."""
TURNAROUND = 0.010
"""Slip p99 in seconds that is normal for any client, even if it is a large fraction of a short request."""
SENT_SHARE_LIMIT = 0.97
"""Minimum sent / offered; below it, the offered load was not delivered."""
AGREEMENT_LIMIT = 0.05
"""Relative difference between client and engine (Little's law, token counts) that needs an explanation."""

ITL_UNCERTAINTY_LIMIT = 0.003
"""A p99 in seconds above this, and above ITL_UNCERTAINTY_SHARE of the ITL's p99, makes the ITL unreliable."""
ITL_UNCERTAINTY_SHARE = 0.25
COUNT_LIMIT = 0.01
"""Maximum fraction of requests with unreliable token counts."""

REQUESTS_IN_TRANSIT = 1.5
"""Smaller differences between client and engine are ignored: requests are in transit, or have just finished."""


class TrustVerdict(StrEnum):
    """The verdict of the trust meter."""

    OK = "ok"
    SUSPECT = "suspect"
    """Client and engine disagree."""
    CLIENT_BOUND = "client-bound"
    """The client was the bottleneck, so the numbers describe the client rather than the engine."""
    NO_FIGURES = "no figures"
    """No request succeeded, so nothing was measured."""
    UNKNOWN = "unknown"
    """No request has been sent yet."""


class CheckState(StrEnum):
    """The result of one check."""

    PASSED = "passed"
    BROKEN = "broken"
    EXEMPT = "exempt"
    """Beyond its limit, or without a meaning, for the reason given in `exemption`."""
    UNKNOWN = "unknown"


def is_stamped(stamped: float, chunks: float) -> bool:
    """Whether the kernel timestamped all chunks except a fraction of at most COUNT_LIMIT."""
    return chunks > 0 and stamped >= (1 - COUNT_LIMIT) * chunks


def itl_uncertainty(uncertain: LogHistogram, gaps: float) -> float:
    """Return the seconds within which 99 % of all gaps, including exactly known ones, are known; NaN without gaps."""
    if not gaps:
        return math.nan
    exact = 1 - uncertain.count / gaps
    return uncertain.percentile(100 * (0.99 - exact) / (1 - exact)) if exact < 0.99 else 0.0


def limit_in_force(limits: FloatArray, queued: FloatArray) -> int | None:
    """Return the concurrency limit of ticks with queued requests, or of all if there are none; None if it varied."""
    relevant = limits[queued > 0] if (queued > 0).any() else limits
    distinct = {limit for limit in relevant.tolist() if math.isfinite(limit)}
    return int(distinct.pop()) if len(distinct) == 1 else None


def _at_most(value: float, limit: float) -> TrustCheck:
    return _check(value, limit, abs(value) > limit)


def _check(value: float, limit: float, beyond: bool, *, exemption: str = "") -> TrustCheck:
    if math.isnan(value):
        return TrustCheck(value=value, limit=limit, state=CheckState.UNKNOWN)
    if beyond and exemption:
        return TrustCheck(value=value, limit=limit, state=CheckState.EXEMPT, exemption=exemption)
    return TrustCheck(value=value, limit=limit, state=CheckState.BROKEN if beyond else CheckState.PASSED)
