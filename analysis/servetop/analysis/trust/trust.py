"""The trust meter: whether the measurements can be trusted, given the client's performance and the counters.

The same rules apply to a live window, a stage, a steady window and a run; `live_trust` and the summary provide inputs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from servetop.analysis.trust.cache_check import CacheCheck
from servetop.analysis.trust.engine_times import EngineTimes
from servetop.analysis.trust.other_clients import requests_text, serves_others, shares_text
from servetop.analysis.trust.trust_check import CLIENT_CHECKS, ENGINE_CHECKS, CheckState, TrustCheck, at_most, check
from servetop.analysis.trust.trust_verdict import TrustVerdict
from servetop.core.system.scheduling import HOW_TO_GRANT
from servetop.core.tick import SenderClass


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """The values behind the verdict; NaN if unknown (no engine metrics, or nothing sent)."""

    slip_p99: float = math.nan
    loop_lag_p99: float = math.nan
    """Seconds, as `slip_p99`."""
    ttft_p99: float = math.nan
    """Seconds; what lateness is compared with."""
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
    foreign: float = math.nan
    """Mean requests that the engine held while the client had none in flight; NaN if no scrape shows it."""
    token_error: float = math.nan
    """Engine's generated tokens / client's tokens - 1, from `consistency.token_error`."""
    times: EngineTimes = EngineTimes()
    """Mean latencies by the client and by the engine."""
    sender_class: SenderClass | None = None
    """The worst scheduling class of the senders; None if unknown."""
    guessed: float = 0.0
    """Fraction of completed requests whose output tokens are counted chunks, each of which may have several tokens."""
    imported: bool = False
    """Whether the requests are those of another tool's file, so that the server may have sent a count that it lacks."""
    disputed: float = 0.0
    """Fraction of completed requests whose `usage` contradicts the stream or the requested tokens."""
    output_share: float = math.nan
    """Output tokens / tokens that the requests demanded by `ignore_eos` or `min_tokens`; NaN without a demand."""
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
            *self._disagreements,
            (
                self.guessed > COUNT_LIMIT and not abs(self.token_error) <= AGREEMENT_LIMIT,
                f"tokens of {self.guessed:.0%} of requests are counted events: the "
                f"{'imported file has no count of the server' if self.imported else 'server sends no usage'}",
            ),
            (
                self._breaks("ttft"),
                f"client TTFT mean {self.times.ttft.client * 1e3:.1f} ms, engine's own "
                f"{self.times.ttft.engine * 1e3:.1f} ms: the difference arises outside the engine",
            ),
            (
                self._itl_uncertain,
                f"ITL p99 is uncertain by {self.itl_uncertainty_p99 * 1e3:.1f} ms: many events were read together",
            ),
            (
                self.disputed > COUNT_LIMIT,
                f"the usage of {self.disputed:.0%} of requests contradicts the stream or the tokens requested",
            ),
            (
                self.output_share < OUTPUT_SHARE_LIMIT,
                f"outputs are {self.output_share:.0%} of what was requested (the server ignores ignore_eos)",
            ),
            (bool(self.cache.reason), self.cache.reason),
        ]
        return tuple(phrase for broken, phrase in phrases if broken)

    @property
    def _disagreements(self) -> list[tuple[bool, str]]:
        """The phrases about requests and tokens; those about other clients take the place of the differences."""
        requests, tokens = self.littles_law_error, self.token_error
        if self.serves_others:
            return [(True, shares_text(requests, tokens))]
        return [
            (self._breaks("littles_law"), f"engine holds {requests:+.0%} requests vs client".replace("-", "−")),
            (abs(tokens) > AGREEMENT_LIMIT, f"engine counts {tokens:+.0%} tokens vs client".replace("-", "−")),
        ]

    @property
    def serves_others(self) -> bool:
        """Whether the engine serves other clients too: it exceeds the client by more than requests in transit."""
        error = self.littles_law_error
        if self.all_failed or error <= self.littles_law_limit:
            return False
        return serves_others(error, self.token_error, in_flight=self.in_flight, foreign=self.foreign)

    @property
    def holds_too_few(self) -> bool:
        """Whether the engine holds fewer requests than are in flight, by more than those in transit."""
        return -self.littles_law_error > max(REQUESTS_MISSING, self.littles_law_limit)

    @property
    def other_requests(self) -> str:
        """How many of the requests in the engine are those of other clients, in words."""
        return requests_text(self.littles_law_error, in_flight=self.in_flight, foreign=self.foreign)

    @property
    def _itl_uncertain(self) -> bool:
        return self.itl_uncertainty_p99 > max(ITL_UNCERTAINTY_LIMIT, ITL_UNCERTAINTY_SHARE * self.itl_p99)

    @property
    def checks(self) -> Mapping[str, TrustCheck]:
        """The checks of CLIENT_CHECKS and ENGINE_CHECKS: of a closed loop `late_share` instead of `slip_p99`.

        `slip_p99`, `loop_lag_p99` and `ttft` are in seconds, the others fractions.
        """
        share, excess = self.sent_share, self.times.ttft.excess
        late, quick = self.late_share, "short requests" if self.slip_p99 <= TURNAROUND else ""
        lag, stamped = self.loop_lag_p99, "kernel timestamps" if self.stamped else ""
        return {
            **(
                {"late_share": check(late, LATE_SHARE_LIMIT, late > LATE_SHARE_LIMIT, exemption=quick)}
                if self.closed
                else {"slip_p99": at_most(self.slip_p99, self.lateness_limit)}
            ),
            "loop_lag_p99": check(lag, self.lateness_limit, lag > self.lateness_limit, exemption=stamped),
            "sent_share": check(share, SENT_SHARE_LIMIT, share < SENT_SHARE_LIMIT, exemption=self._exemption),
            "littles_law": self._littles_law,
            "tokens": at_most(self.token_error, AGREEMENT_LIMIT),
            "ttft": check(excess, self.ttft_limit, excess > self.ttft_limit),
        }

    @property
    def lateness_limit(self) -> float:
        """Seconds of slip and loop lag at p99 that hardly change TTFT: LATENESS_SHARE of its p99."""
        return LOOP_LAG_LIMIT if math.isnan(self.ttft_p99) else min(LOOP_LAG_LIMIT, _felt(self.ttft_p99))

    @property
    def lateness_is_felt(self) -> bool:
        """Whether users felt mainly the client: its lateness is LATENESS_SHARE of TTFT, however slow the engine is."""
        late = (math.nan if self.closed else self.slip_p99, math.nan if self.stamped else self.loop_lag_p99)
        return any(each > _felt(self.ttft_p99) for each in late) or self._breaks("late_share")

    @property
    def ttft_limit(self) -> float:
        """Seconds by which the client's mean TTFT may exceed the engine's: two round trips, or half of the engine's."""
        engine, trip = self.times.ttft.engine, self.times.round_trip
        known = [each for each in (TTFT_EXCESS_SHARE * engine, ROUND_TRIPS * trip) if not math.isnan(each)]
        return max([TURNAROUND, *known])

    @property
    def compared(self) -> tuple[str, ...]:
        """What was compared with a limit that applies, in words."""
        judged = (CheckState.PASSED, CheckState.BROKEN)
        names = CLIENT_CHECKS | ENGINE_CHECKS
        return tuple(text for name, text in names.items() if name in self.checks and self.checks[name].state in judged)

    @property
    def advice(self) -> str:
        """What to do about other clients of the server, or about senders that waited for a processor; may be empty."""
        if self.serves_others:
            return "measure a server that no other client uses: its queue and its tokens are in these figures"
        waited = self._itl_uncertain or any(map(self._breaks, ("slip_p99", "late_share", "loop_lag_p99", "ttft")))
        if not waited or self.sender_class not in _ADVICE:
            return ""
        return _ADVICE[self.sender_class]

    @property
    def _littles_law(self) -> TrustCheck:
        limit, error = self.littles_law_limit, self.littles_law_error
        few = "few in flight" if limit >= 1 and not self.serves_others else ""
        exemption = "none succeeded" if self.all_failed else few
        return check(error, limit, abs(error) > limit or bool(exemption), exemption=exemption)

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
        """Sent / offered; NaN if nothing was offered, or the client was not observed."""
        return self.sent_rate / self.offered_rate if self.offered_rate > 0 and self._observed else math.nan

    @property
    def _observed(self) -> bool:
        """Whether the client's lateness is known: not before the first request, and not of an imported run."""
        return not (math.isnan(self.slip_p99) and math.isnan(self.loop_lag_p99))

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
        judged = self.checks.get(name)
        return judged is not None and judged.state is CheckState.BROKEN

    @property
    def client_is_late(self) -> bool:
        """Whether the client did not keep its schedule, or was too busy to measure any time."""
        too_late = self._breaks("slip_p99") and self.slip_p99 > SLIP_LIMIT
        too_slow = self._breaks("loop_lag_p99") and self.loop_lag_p99 > LOOP_LAG_LIMIT
        return too_late or too_slow or self._breaks("late_share")

    @property
    def verdict(self) -> TrustVerdict:
        """The verdict: client-bound takes precedence over suspect, because a slow client causes disagreements, too."""
        if self.all_failed:
            return TrustVerdict.NO_FIGURES
        if not self._observed:
            return TrustVerdict.UNKNOWN
        if self.client_is_late or self._breaks("sent_share"):
            return TrustVerdict.CLIENT_BOUND
        return TrustVerdict.SUSPECT if self.reasons else TrustVerdict.OK


SLIP_LIMIT = 0.100
"""p99 of schedule slip in seconds above which the client did not keep its schedule, whatever TTFT is."""
LOOP_LAG_LIMIT = 0.100
"""p99 of event-loop lag in seconds above which the loop was too busy to measure any time, whatever TTFT is."""
LATENESS_SHARE = 0.25
"""Fraction of TTFT's p99 above which slip or loop lag at p99 make TTFT unreliable, as ITL_UNCERTAINTY_SHARE for ITL."""
TTFT_EXCESS_SHARE, ROUND_TRIPS = 0.5, 2
"""Fraction of the engine's TTFT, and round trips (one opens a connection), that network and HTTP server may add."""
LATE_SHARE_LIMIT = 0.03
"""Maximum lateness / time from due to done of a closed loop, where a request is due when the previous one ends."""
TURNAROUND = 0.010
"""Lateness in seconds that is normal for any client, even if it is a large fraction of a short request."""
SENT_SHARE_LIMIT = 0.97
"""Minimum sent / offered; below it, the offered load was not delivered."""
AGREEMENT_LIMIT = 0.05
"""Relative difference between client and engine (Little's law, token counts) that needs an explanation."""
ITL_UNCERTAINTY_LIMIT = 0.003
"""A p99 in seconds above this, and above ITL_UNCERTAINTY_SHARE of the ITL's p99, makes the ITL unreliable."""
ITL_UNCERTAINTY_SHARE = 0.25
OUTPUT_SHARE_LIMIT = 0.9
"""Minimum output / demanded tokens; below it the load on the engine is not the one that was asked for."""
COUNT_LIMIT = 0.01
"""Maximum fraction of requests with unreliable token counts."""
REQUESTS_MISSING = 0.2
"""Fraction of the requests in flight, more of which are not in transit if the engine does not hold them."""
REQUESTS_IN_TRANSIT = 1.5
"""Smaller differences between client and engine are ignored: requests are in transit, or have just finished."""

_ADVICE = {
    SenderClass.ORDINARY: f"the senders may not use the real-time class; permit it: {HOW_TO_GRANT}",
    SenderClass.LEFT: "the senders left the real-time class, which needs little of a processor: use --workers",
}


def _felt(ttft_p99: float) -> float:
    """Return the lateness in seconds that is a large fraction of this TTFT."""
    return max(TURNAROUND, LATENESS_SHARE * ttft_p99)
