"""The trust meter: whether the client and the counters allow the numbers to be believed.

One rule for a live window, a stage, a steady window and a run; `live_trust` and the summary gather its inputs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from servetop.core.arrays import FloatArray
from servetop.core.histogram import LogHistogram

SLIP_LIMIT = 0.100
"""Seconds at p99; above it the client did not keep its schedule."""
LOOP_LAG_LIMIT = 0.100
"""Seconds at p99; above it the event loop was too busy to take accurate times."""
LATE_SHARE_LIMIT = 0.03
"""Lateness / time from due to done, of a closed loop: its next request is due when the previous response ends."""
TURNAROUND = 0.010
"""Seconds at p99; less is any client's turnaround, however large a share of a short request it is."""
SENT_SHARE_LIMIT = 0.97
"""Sent / offered; below it the offered load was not delivered."""
AGREEMENT_LIMIT = 0.05
"""Relative difference between client and engine (Little's law, token counts) that needs an explanation."""

ITL_UNCERTAINTY_LIMIT = 0.003
"""Seconds at p99; more than this, and than ITL_UNCERTAINTY_SHARE of the ITL's p99, makes the ITL doubtful."""
ITL_UNCERTAINTY_SHARE = 0.25
COUNT_LIMIT = 0.01
"""Share of requests whose token counts may be doubtful."""

REQUESTS_IN_TRANSIT = 1.5
"""Requests; a smaller difference does not count: they are in transit, or just finished."""


class TrustVerdict(StrEnum):
    """The verdict of the trust meter."""

    OK = "ok"
    SUSPECT = "suspect"
    """Client and engine disagree."""
    CLIENT_BOUND = "client-bound"
    """The client was the bottleneck: the numbers describe it rather than the engine."""
    NO_FIGURES = "no figures"
    """Requests ended, none of them well: nothing was measured."""
    UNKNOWN = "unknown"
    """Nothing was sent yet."""


class CheckState(StrEnum):
    """The result of one check."""

    PASSED = "passed"
    BROKEN = "broken"
    EXEMPT = "exempt"
    """Beyond its limit, but not judged: `exemption` gives the reason."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustCheck:
    """One figure, the limit it is judged by, and the result."""

    value: float
    limit: float
    state: CheckState
    exemption: str = ""
    """Why the check does not apply; empty unless exempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """The figures behind the verdict; NaN is unknown (no engine metrics, nothing sent)."""

    slip_p99: float = math.nan
    """Seconds."""
    loop_lag_p99: float = math.nan
    """Seconds."""
    stamped: bool = False
    """The kernel stamped the arrivals, so reading them late changes no time."""
    late_share: float = math.nan
    """How much smaller a closed loop's load was because requests were sent late; NaN for other loads."""
    offered_rate: float = math.nan
    sent_rate: float = math.nan
    completed_rate: float = math.nan
    seconds: float = math.nan
    """Time in which `sent_rate` was sent."""
    all_failed: bool = False
    """Requests ended, none of them well."""
    limited: bool = False
    """The concurrency limit queued requests at the client: sending less than offered is then intended."""
    concurrency_limit: int | None = None
    """The limit; None if it varied or is unknown."""
    littles_law_error: float = math.nan
    """(engine running + waiting) / client in flight - 1, means over the same time."""
    in_flight: float = math.nan
    """Mean requests in flight at the client."""
    token_error: float = math.nan
    """Engine's generated tokens / client's tokens - 1, as `consistency.token_error` counts them."""

    guessed: float = 0.0
    """Share of completed requests whose output tokens are counted chunks, each of which may hold several tokens."""
    disputed: float = 0.0
    """Share of completed requests whose `usage` contradicts the stream, or the tokens requested."""

    itl_p99: float = math.nan
    """Seconds."""
    itl_uncertainty_p99: float = math.nan
    """Seconds within which 99 % of the gaps between chunks are known: chunks read together have one time."""

    @property
    def reasons(self) -> tuple[str, ...]:
        """One phrase for each broken limit; empty when there is none."""
        found = [
            (self.all_failed, "no request ended well, so nothing was measured"),
            (self._breaks("slip_p99"), f"requests sent {self.slip_p99 * 1e3:.0f} ms late at p99"),
            (self._breaks("late_share"), f"closed-loop requests sent late: {self.late_share:.0%} less load"),
            (self._breaks("loop_lag_p99"), f"client event loop lagged {self.loop_lag_p99 * 1e3:.0f} ms at p99"),
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
                f"the usage of {self.disputed:.0%} of requests contradicts the stream or the tokens requested",
            ),
        ]
        return tuple(phrase for broken, phrase in found if broken)

    @property
    def _itl_uncertain(self) -> bool:
        return self.itl_uncertainty_p99 > max(ITL_UNCERTAINTY_LIMIT, ITL_UNCERTAINTY_SHARE * self.itl_p99)

    @property
    def checks(self) -> Mapping[str, TrustCheck]:
        """The checks `slip_p99` (`late_share` in a closed loop), `loop_lag_p99`, `sent_share`, `littles_law`, `tokens`.

        `slip_p99` and `loop_lag_p99` are seconds, the others shares.
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
        """Whether the whole load is a closed loop."""
        return not math.isnan(self.late_share)

    @property
    def littles_law_limit(self) -> float:
        """AGREEMENT_LIMIT, or more with few requests in flight: one in transit is a large share of them."""
        return max(AGREEMENT_LIMIT, REQUESTS_IN_TRANSIT / self.in_flight) if self.in_flight > 0 else AGREEMENT_LIMIT

    @property
    def sent_share(self) -> float:
        """Sent / offered; NaN when nothing was offered."""
        return self.sent_rate / self.offered_rate if self.offered_rate > 0 else math.nan

    @property
    def _exemption(self) -> str:
        """Why sending fewer requests than were due is expected; empty if it is not."""
        if self.closed:
            return "closed loop"
        if self.limited:
            return f"limited to {self.concurrency_limit} in flight" if self.concurrency_limit else "concurrency limit"
        if self.seconds * (1 - self.sent_share) <= SLIP_LIMIT:
            return "too short to judge"
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
    """Whether all but COUNT_LIMIT of the chunks were stamped by the kernel."""
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
