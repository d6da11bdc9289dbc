"""May these numbers be believed? The client's own health, judged the same way live and in summaries."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from servetop.core.arrays import FloatArray
from servetop.core.histogram import LogHistogram

SLIP_LIMIT = 0.100
"""Seconds; above it at p99 the client did not keep its schedule."""
LOOP_LAG_LIMIT = 0.100
"""Seconds; above it at p99 the event loop was too busy to take times honestly."""
LATE_SHARE_LIMIT = 0.03
"""Of a closed loop, whose next request waits for an answer: time by which it is late / time that it takes from then."""
TURNAROUND = 0.010
"""Seconds; what is less at p99 is any client's, however much of a short request it is."""
SENT_SHARE_LIMIT = 0.97
"""Sent / offered; below it the offered load was not delivered."""
AGREEMENT_LIMIT = 0.05
"""Relative difference between client and engine (Little's law, token counts) that needs an explanation."""

ITL_UNCERTAINTY_LIMIT = 0.003
"""Seconds; what is more at p99, and more than ITL_UNCERTAINTY_SHARE of the ITL's p99, makes that doubtful."""
ITL_UNCERTAINTY_SHARE = 0.25
COUNT_LIMIT = 0.01
"""Share of requests whose token counts may be doubtful."""

REQUESTS_IN_TRANSIT = 1.5
"""A difference of so few requests is no disagreement: they are on the wire, or just done."""


class TrustVerdict(StrEnum):
    """The trust meter's word."""

    OK = "ok"
    SUSPECT = "suspect"
    """Client and engine disagree: look before you believe."""
    CLIENT_BOUND = "client-bound"
    """The client was the bottleneck: the numbers say more about it than about the engine."""
    NO_FIGURES = "no figures"
    """Requests ended, none of them well: there is nothing to believe."""
    UNKNOWN = "unknown"
    """Nothing was sent yet."""


class CheckState(StrEnum):
    """What became of one check."""

    PASSED = "passed"
    BROKEN = "broken"
    EXEMPT = "exempt"
    """The value is beyond its limit, and there is a reason why that says nothing."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustCheck:
    """One figure, and the limit that it is judged by."""

    value: float
    limit: float
    state: CheckState
    exemption: str = ""
    """Why it is exempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """Figures behind the verdict; NaN is "cannot be said" (no engine metrics, nothing sent)."""

    slip_p99: float = math.nan
    """Seconds."""
    loop_lag_p99: float = math.nan
    """Seconds."""
    stamped: bool = False
    """The kernel told when answers came: they may be read late."""
    late_share: float = math.nan
    """Of a closed loop: how much smaller the load was because requests left late; NaN for others."""
    offered_rate: float = math.nan
    sent_rate: float = math.nan
    completed_rate: float = math.nan
    seconds: float = math.nan
    """Time in which `sent_rate` was sent."""
    all_failed: bool = False
    """Requests ended, and none of them well."""
    limited: bool = False
    """A concurrency limit held requests back: sent below offered is then what was asked for."""
    concurrency_limit: int | None = None
    """That limit; None: there were several, or it is not known."""
    littles_law_error: float = math.nan
    """(engine running + waiting) / client in flight - 1, means over the same time."""
    in_flight: float = math.nan
    """Mean requests in flight at the client: among few, one in transit is a large share."""
    token_error: float = math.nan
    """Engine's generated tokens / client's received tokens - 1; live, of an engine that counts when a request ends,
    / tokens of the client's ended requests - 1."""

    guessed: float = 0.0
    """Share of the completed requests whose output tokens are counted chunks: an event may bring several, or none."""
    disputed: float = 0.0
    """Share of those whose server's count contradicts what came, or what was asked for."""

    itl_p99: float = math.nan
    """Seconds."""
    itl_uncertainty_p99: float = math.nan
    """Seconds within which 99 % of the gaps between chunks are known at least: chunks that are read together have one
    time."""

    @property
    def reasons(self) -> tuple[str, ...]:
        """Each limit that is broken, in words; empty when all is well."""
        found = [
            (self.all_failed, "no request ended well, so nothing was measured"),
            (self._breaks("slip_p99"), f"requests left {self.slip_p99 * 1e3:.0f} ms late at p99"),
            (self._breaks("late_share"), f"the closed loop's requests left late: {self.late_share:.0%} less load"),
            (self._breaks("loop_lag_p99"), f"the client's loop lagged {self.loop_lag_p99 * 1e3:.0f} ms at p99"),
            (self._breaks("sent_share"), f"sent {self.sent_rate:.1f} of {self.offered_rate:.1f} req/s"),
            (
                abs(self.littles_law_error) > self.littles_law_limit,
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
                f"the usage of {self.disputed:.0%} of requests contradicts the stream or the tokens asked for",
            ),
        ]
        return tuple(words for broken, words in found if broken)

    @property
    def _itl_uncertain(self) -> bool:
        return self.itl_uncertainty_p99 > max(ITL_UNCERTAINTY_LIMIT, ITL_UNCERTAINTY_SHARE * self.itl_p99)

    @property
    def checks(self) -> Mapping[str, TrustCheck]:
        """By name: `slip_p99` (of a closed loop `late_share`), `loop_lag_p99`, `sent_share`, `littles_law`, `tokens`.

        The first and `loop_lag_p99` are seconds, the others shares.
        """
        share = self.sent_share
        late = self.late_share > LATE_SHARE_LIMIT and self.slip_p99 > TURNAROUND
        lag, stamped = self.loop_lag_p99, "the kernel stamps what arrives" if self.stamped else ""
        return {
            **(
                {"late_share": _check(self.late_share, LATE_SHARE_LIMIT, late)}
                if self.closed
                else {"slip_p99": _at_most(self.slip_p99, SLIP_LIMIT)}
            ),
            "loop_lag_p99": _check(lag, LOOP_LAG_LIMIT, lag > LOOP_LAG_LIMIT, exemption=stamped),
            "sent_share": _check(share, SENT_SHARE_LIMIT, share < SENT_SHARE_LIMIT, exemption=self._exemption),
            "littles_law": _at_most(self.littles_law_error, self.littles_law_limit),
            "tokens": _at_most(self.token_error, AGREEMENT_LIMIT),
        }

    @property
    def closed(self) -> bool:
        """All of the load is a closed loop."""
        return not math.isnan(self.late_share)

    @property
    def littles_law_limit(self) -> float:
        """AGREEMENT_LIMIT, or more among few requests: one in transit is a large share of them."""
        return max(AGREEMENT_LIMIT, REQUESTS_IN_TRANSIT / self.in_flight) if self.in_flight > 0 else AGREEMENT_LIMIT

    @property
    def sent_share(self) -> float:
        """Sent / offered; NaN when nothing was offered."""
        return self.sent_rate / self.offered_rate if self.offered_rate > 0 else math.nan

    @property
    def _exemption(self) -> str:
        """Why fewer were sent than were due without any fault; empty: it is one."""
        if self.closed:
            return "closed loop"
        if self.limited:
            return f"held back by limit {self.concurrency_limit or ''}".rstrip()
        if self.seconds * (1 - self.sent_share) <= SLIP_LIMIT:
            return "too short to tell"
        return ""

    def _breaks(self, name: str) -> bool:
        check = self.checks.get(name)
        return check is not None and check.state is CheckState.BROKEN

    @property
    def verdict(self) -> TrustVerdict:
        """Client-bound before suspect: a slow client makes everything else disagree too."""
        if math.isnan(self.slip_p99) and math.isnan(self.loop_lag_p99):
            return TrustVerdict.UNKNOWN
        if self.all_failed:
            return TrustVerdict.NO_FIGURES
        if any(map(self._breaks, ("slip_p99", "late_share", "loop_lag_p99", "sent_share"))):
            return TrustVerdict.CLIENT_BOUND
        return TrustVerdict.SUSPECT if self.reasons else TrustVerdict.OK


def is_stamped(stamped: float, chunks: float) -> bool:
    """Whether so many of the chunks are stamped that the others do not count."""
    return chunks > 0 and stamped >= (1 - COUNT_LIMIT) * chunks


def itl_uncertainty(doubtful: LogHistogram, gaps: float) -> float:
    """Seconds within which 99 % of all gaps are known, those known exactly included; NaN when no chunk arrived."""
    if not gaps:
        return math.nan
    exact = 1 - doubtful.count / gaps
    return doubtful.percentile(100 * (0.99 - exact) / (1 - exact)) if exact < 0.99 else 0.0


def limit_in_force(limits: FloatArray, queued: FloatArray) -> int | None:
    """The concurrency limit of the ticks in which requests were queued, or of all if none were; None if it varied."""
    chosen = limits[queued > 0] if (queued > 0).any() else limits
    distinct = {limit for limit in chosen.tolist() if math.isfinite(limit)}
    return int(distinct.pop()) if len(distinct) == 1 else None


def _at_most(value: float, limit: float) -> TrustCheck:
    return _check(value, limit, abs(value) > limit)


def _check(value: float, limit: float, beyond: bool, *, exemption: str = "") -> TrustCheck:
    if math.isnan(value):
        return TrustCheck(value=value, limit=limit, state=CheckState.UNKNOWN)
    if beyond and exemption:
        return TrustCheck(value=value, limit=limit, state=CheckState.EXEMPT, exemption=exemption)
    return TrustCheck(value=value, limit=limit, state=CheckState.BROKEN if beyond else CheckState.PASSED)
