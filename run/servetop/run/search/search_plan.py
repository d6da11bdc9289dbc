"""The plan of a search: which load to keep next, for how long, and what the answer is.

Everything follows from the evidence, so a search that was interrupted continues where it was. The load rises by factors
until an objective is missed; then loads near the answer are kept in turn, until its interval is narrow or the
budget is nearly over; last, the lower end of the interval is kept once more to confirm it. That counts as evidence too:
if the interval is too wide with it, and there is time, the search continues.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter

from servetop.core.text.counted import counted
from servetop.run.search.drift import drift
from servetop.run.search.load_windows import LoadWindow, Trend, in_flight_at, merged, windows
from servetop.run.search.queue_windows import QUEUE_ALLOWED, expected_in_flight, queue_windows
from servetop.run.search.search_answer import AnswerKind, TierAnswer
from servetop.run.search.search_evidence import Evidence, LoadObjective, NextProbe, Purpose, SearchLimits
from servetop.run.search.search_pace import STEP, SearchPace
from servetop.run.search.tier_posterior import TierPosterior, is_clearly_missed, is_missed, tier_posterior

_IDLE_STEP = 4.0
"""Factor between loads on the way up while less than one request is in flight."""
_LATENCIES = 4.0
"""A load is kept for this many request latencies at least, ..."""
_LONGEST = 60.0
"""... but no longer than this on one visit, seconds, ..."""
_RISING = 2.0
"""... unless requests in flight still rise: then this many times as long."""
LONGEST_RISE = _RISING * _LONGEST
"""Seconds after which a queue that rose all the time is one that grows."""
_DECIDED, _DECIDED_SHARE = 4.0, 0.1
"""In a closed loop, after one was too high, a load is kept for this many times the time after which a request has met
or missed its limit, as those of the end do not count, but for no longer than this share of the budget."""
_LEAST_COUNTED = 5
"""Samples of each objective with a known outcome before a load is left, ..."""
_WAIT_SHARE = 0.05
"""... of those that count in a closed loop, if that takes no longer than this share of the budget."""
_CERTAIN = 0.995
"""Probability from which a load is known to be too high and is left at once."""
_AIMS = (0.35, 0.8)
"""Quantiles of the posterior that are kept in turn."""
_BEYOND = 1.1
"""No load is tried beyond this many times the least that was too high beyond doubt."""
_RECOVERED = 1.3
"""A backlog is gone when requests in flight are no more than this many times those expected at the answer."""
_NEARLY = 1.05
"""The latency at a load is that of loads up to this many times as large."""
_CONFIRMED = 30.0
"""Least seconds of a confirmation in an open loop, where a queue that grows shows late, ..."""
_CONFIRM_SHARE = 0.25
"""... and the share of the budget that it takes at most, unless that is shorter than any load."""
_LONGEST_ADVICE = 600.0
"""A budget beyond these minutes is not advised."""


class SearchPlan:
    """Chooses loads and draws conclusions; the same evidence always gives the same load and the same answer."""

    def __init__(
        self, tiers: Sequence[Sequence[int]], objectives: Sequence[LoadObjective], limits: SearchLimits
    ) -> None:
        self._tiers = tiers
        self._objectives = objectives
        self._limits = limits
        decided = [each.decided for each in objectives if limits.concurrency and each.decided > 0]
        self._decided = max(decided, default=0.0)
        self._pace = SearchPace.of(limits)

    def next(self, evidence: Evidence) -> NextProbe | None:
        """Return the load to keep next; None if the search is over."""
        left = self._limits.budget - evidence.seconds
        if left <= 0:
            return None
        if again := self._after_restart(evidence):
            return again
        if not evidence.probes:
            return NextProbe(load=self._start(), seconds=self._pace.first, reason="the first load")
        views = self._views(evidence)
        if not views[0]:
            return NextProbe(load=evidence.probes[-1].load, seconds=self._pace.chunk, reason="nothing was measured yet")
        tiers = [self._tier(views, tier) for tier in self._tiers]
        tier = max((each for each in tiers if each.is_wide), key=attrgetter("width"), default=None)
        current, last = [view[-1] for view in views], evidence.probes[-1]
        confirm, recovery = self._confirm_seconds(views[0], tiers), self._recovery(evidence, views, tiers)
        ends = tier is None or left < self._pace.first + confirm + self._recovery_seconds(evidence, views, tiers)
        if last.purpose is Purpose.CONFIRM:
            rest = min(confirm - evidence.seconds_of_last(Purpose.CONFIRM), left)
            if rest > self._pace.chunk / 2:
                return self._confirming(last.load, rest)
            if ends:
                return None
        if not ends and last.purpose is Purpose.MEASURE and (reason := self._holds(views, tier or tiers[0])):
            return NextProbe(load=current[0].load, seconds=self._pace.chunk, reason=reason)
        if recovery is not None:
            return None if ends and left < self._pace.first else replace(recovery, seconds=min(recovery.seconds, left))
        return self._confirmation(tiers, min(confirm, left)) if ends or tier is None else self._move(views, tier)

    def answers(self, evidence: Evidence) -> tuple[TierAnswer, ...]:
        """Return the answer of each tier."""
        if not merged(evidence.probes):
            unknown = TierAnswer(kind=AnswerKind.WIDE, load=None, low=0.0, high=math.inf, binding="")
            return tuple(unknown for _ in self._tiers)
        views, used = self._views(evidence), sum(probe.end - probe.begin for probe in merged(evidence.probes))
        return tuple(
            self._drifted(views, tier) or self._answer(self._tier(views, tier), views, used) for tier in self._tiers
        )

    # --- what was seen ---

    def _views(self, evidence: Evidence) -> list[list[LoadWindow]]:
        """Return the windows of each objective, and last those of the queue, which all have equal loads.

        Those of confirmations are among them: what contradicts an answer counts.
        """
        probes = merged(evidence.probes, purposes=(Purpose.MEASURE, Purpose.CONFIRM))
        seen = [
            windows(evidence, index, probes=probes, concurrency=self._limits.concurrency)
            for index in range(len(self._objectives))
        ]
        return [*seen, queue_windows(seen[0], longest=LONGEST_RISE)]

    def _tier(self, views: Sequence[Sequence[LoadWindow]], members: Sequence[int]) -> TierPosterior:
        return tier_posterior(views, members, self._objectives, self._limits)

    def _drifted(self, views: Sequence[Sequence[LoadWindow]], tier: Sequence[int]) -> TierAnswer | None:
        """Return the answer of a tier whose later loads contradict the earlier ones; None while they agree.

        Means are not compared: samples around a mean miss it together for so long that they look like a drift.
        """
        tier = [index for index in tier if not self._objectives[index].mean]
        found = drift([views[index] for index in tier], [self._objectives[index].allowed for index in tier])
        if found is None:
            return None
        binding = self._objectives[tier[found.objective]].text
        return TierAnswer(kind=AnswerKind.DRIFTED, load=None, low=0.0, high=math.inf, binding=binding, drift=found)

    # --- what to do next ---

    def _after_restart(self, evidence: Evidence) -> NextProbe | None:
        """Return half of the load at which the server restarted, its first one; None if it was kept, or cannot be."""
        if not evidence.earlier or len(evidence.probes) > 1:
            return None
        last = evidence.earlier[-1]
        half = self._rounded(last.load if last.purpose is Purpose.RECOVER else 0.5 * last.load)
        if any(each.load == half and each.purpose is Purpose.MEASURE for each in evidence.probes):
            return None
        return NextProbe(load=half, seconds=self._pace.first, reason="the first load since the server restarted")

    def _start(self) -> float:
        prior = self._limits.prior
        first = self._limits.low if prior is None else max(self._limits.low, 0.5 * prior)
        return min(self._rounded(first), self._limits.high)

    def _rounded(self, load: float) -> float:
        load = min(max(load, self._limits.low), self._limits.high)
        return float(max(1, round(load))) if self._limits.concurrency else float(f"{load:.4g}")

    def _seconds(self, window: LoadWindow) -> float:
        latency = 0.0 if math.isnan(window.latency) else window.latency
        return min(max(self._pace.first, _LATENCIES * latency), _LONGEST)

    def _holds(self, views: Sequence[Sequence[LoadWindow]], tier: TierPosterior) -> str:
        """Return why the current load is kept for longer: nothing is certain, and it has not settled; else nothing."""
        current = [view[-1] for view in views]
        window = current[0]
        if current[-1].missed:
            return ""
        if longest := self._longest_wait(current):
            return "too few requests have ended" if window.seconds < longest else ""
        if tier.whole.below(window.load) > _CERTAIN and self._is_overload(current):
            return ""
        if window.trend is Trend.RISING:
            return "requests in flight still rise" if window.seconds < LONGEST_RISE else ""
        if window.trend is Trend.FALLING:
            return "requests in flight still fall" if window.seconds < _LONGEST else ""
        low, high = tier.whole.interval
        near = low < window.load < high and high < STEP**2 * low
        least = self._seconds(window)
        if _was_too_high(views, tier):
            least = max(least, min(_DECIDED * self._decided, _DECIDED_SHARE * self._limits.budget))
        if window.seconds < least:
            return f"kept for {least:.0f} s at least"
        long = near and window.seconds < min(_LONGEST, self._limits.budget / 15)
        return "near the answer, so kept for longer" if long else ""

    def _longest_wait(self, current: Sequence[LoadWindow]) -> float:
        """Return for how long a load is kept at most until enough requests have ended; 0 if they have."""
        if current[0].in_flight < 1:
            return 0.0
        if min(each.known for each in current[:-1]) < _LEAST_COUNTED:
            return LONGEST_RISE
        few = min(each.counted for each in current[:-1]) < _LEAST_COUNTED
        return _WAIT_SHARE * self._limits.budget if few else 0.0

    def _is_overload(self, current: Sequence[LoadWindow]) -> bool:
        """Whether the last load missed an objective, or its queue grows."""
        missed = (is_missed(window, each) for window, each in zip(current, self._objectives, strict=False))
        return current[-1].share > QUEUE_ALLOWED or any(missed)

    def _is_clear(self, current: Sequence[LoadWindow]) -> bool:
        """Whether a load is beyond doubt too high: it misses an objective by far, or its queue grows."""
        far = (is_clearly_missed(window, each) for window, each in zip(current, self._objectives, strict=False))
        return current[-1].missed > 0 or any(far)

    def _move(self, views: Sequence[Sequence[LoadWindow]], tier: TierPosterior) -> NextProbe:
        window, highest = views[0][-1], max(each.load for each in views[0])
        if not _was_too_high(views, tier) and highest < self._limits.high:
            step = _IDLE_STEP if window.in_flight < 1 else self._pace.step(highest)
            return NextProbe(
                load=self._rounded(highest * step), seconds=self._pace.first, reason="no load was too high yet"
            )
        middle = tier.whole.quantile(0.5)
        visits = sum(middle / STEP < each.load < middle * STEP for each in views[0])
        least = min((each[0].load for each in zip(*views, strict=True) if self._is_clear(each)), default=math.inf)
        load = self._rounded(min(tier.whole.quantile(_AIMS[visits % 2]), _BEYOND * least))
        return NextProbe(
            load=load, seconds=self._pace.chunk, reason=f"{100 * tier.whole.below(load):.0f} % likely to be too high"
        )

    def _recovery(
        self, evidence: Evidence, views: Sequence[Sequence[LoadWindow]], tiers: Sequence[TierPosterior]
    ) -> NextProbe | None:
        """Return a small load until the backlog of one that was too high is gone; None without a backlog."""
        took = evidence.seconds_of_last(Purpose.RECOVER)
        if self._limits.concurrency or not (took or self._is_overload([view[-1] for view in views])):
            return None
        middle = min(tier.whole.quantile(0.5) for tier in tiers)
        backlog = in_flight_at(evidence, evidence.probes[-1].end)
        if backlog <= _RECOVERED * expected_in_flight(views[0], middle) or took >= _LONGEST:
            return None
        reason = f"until the backlog of {counted(round(backlog), 'request')} is gone"
        return NextProbe(
            load=self._rounded(middle / 2), seconds=self._pace.chunk, purpose=Purpose.RECOVER, reason=reason
        )

    def _recovery_seconds(
        self, evidence: Evidence, views: Sequence[Sequence[LoadWindow]], tiers: Sequence[TierPosterior]
    ) -> float:
        """Return for how long a backlog must be served at most, if the next load is one for which that is needed.

        With the last load being too high, that is the time for its backlog, as if it were kept for a little longer.
        """
        window = views[0][-1]
        if self._limits.concurrency:
            return 0.0
        if not self._is_overload([view[-1] for view in views]):
            return self._pace.chunk
        middle = min(tier.whole.quantile(0.5) for tier in tiers)
        backlog = in_flight_at(evidence, evidence.probes[-1].end) + max(window.load - middle, 0.0) * self._pace.chunk
        excess = backlog - _RECOVERED * expected_in_flight(views[0], middle)
        return min((math.ceil(max(excess, 0.0) / (middle / 2) / self._pace.chunk) + 1) * self._pace.chunk, _LONGEST)

    def _confirm_seconds(self, view: Sequence[LoadWindow], tiers: Sequence[TierPosterior]) -> float:
        """Return for how long a load is confirmed: by the latency at the largest load that is hardly beyond it."""
        load = _NEARLY * self._claimed(tiers)
        like = max((each for each in view if each.load <= load), key=attrgetter("load"), default=view[-1])
        least = self._pace.first if self._limits.concurrency else _CONFIRMED
        return max(self._pace.first, min(max(least, self._seconds(like)), _CONFIRM_SHARE * self._limits.budget))

    def _claimed(self, tiers: Sequence[TierPosterior]) -> float:
        """Return the lower end of the narrowest claim."""
        return min(self._limits.high, *(tier.whole.interval[0] for tier in tiers))

    def _confirmation(self, tiers: Sequence[TierPosterior], seconds: float) -> NextProbe | None:
        """Return the lower end of the narrowest claim; None if no load is claimed to be kept, or time is short."""
        load = self._claimed(tiers)
        if load < self._limits.low or seconds < self._pace.first:
            return None
        return self._confirming(self._rounded(load), seconds)

    def _confirming(self, load: float, seconds: float) -> NextProbe:
        return NextProbe(load=load, seconds=seconds, purpose=Purpose.CONFIRM, reason="to confirm the answer")

    def _answer(self, tier: TierPosterior, views: Sequence[Sequence[LoadWindow]], used: float) -> TierAnswer:
        low, high = tier.whole.interval
        middle, kind = tier.whole.quantile(0.5), tier.kind
        lowest = min(range(len(tier.parts)), key=lambda index: tier.parts[index].quantile(0.5))
        if kind is AnswerKind.ABOVE:
            return TierAnswer(kind=kind, load=None, low=min(low, self._limits.high), high=math.inf, binding="")
        if kind is AnswerKind.BELOW:
            return TierAnswer(kind=kind, load=None, low=0.0, high=self._limits.low, binding=tier.text[lowest])
        left = used * ((tier.width / self._limits.precision) ** 2 - 1) / 60
        if not _was_too_high(views, tier):
            high = left = math.inf
        low, middle, high = (self._whole_users(each) for each in (low, middle, high))
        more = left if kind is AnswerKind.WIDE and left < _LONGEST_ADVICE else None
        return TierAnswer(kind=kind, load=middle, low=low, high=high, binding=tier.text[lowest], minutes_left=more)

    def _whole_users(self, load: float) -> float:
        """Return a load that exists: requests in flight are whole, and the larger number of them is not kept."""
        return float(math.floor(load)) if self._limits.concurrency and load < math.inf else load


def _was_too_high(views: Sequence[Sequence[LoadWindow]], tier: TierPosterior) -> bool:
    """Whether one of the loads was too high, as likely as not."""
    return tier.whole.below(max(each.load for each in views[0])) >= 0.5
