"""Which overloads say much about a run: not the shortest, and not those that passed without a visible limit."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from servetop.analysis.diagnosis.capacity import KEPT_SHARE
from servetop.analysis.diagnosis.episode import Episode, EpisodeKind
from servetop.analysis.diagnosis.held_back import began_cold
from servetop.analysis.diagnosis.kept_load import share_kept, unserved_share
from servetop.analysis.diagnosis.marks import WINDOW
from servetop.analysis.diagnosis.overload import CLIENT_SIDE, OVERLOAD, Overload
from servetop.analysis.diagnosis.recovery import still_waits
from servetop.analysis.diagnosis.run_record import RunRecord
from servetop.analysis.diagnosis.signals import awaiting_first_token
from servetop.analysis.diagnosis.stalls import STALL_SECONDS, Period, generates, is_prefill, joined, silences
from servetop.analysis.diagnosis.trailing import ticks_of

_SHORTEST = 5.0
"""Seconds; shorter overloads do not decide the verdict of a run, unless they are _SHORTEST_SHARE of its load."""
_SHORTEST_SHARE = 0.1
_SECOND_PAGE = 0.5
"""Seconds between pages from which the length of an overload may be that of its pages."""
_MADE_UP = 3.0
"""Seconds after a time without a token within which an overload that it caused begins."""
_TOGETHER = 0.5
"""Seconds by which the overload may seem to begin before that time."""
_MOST_MADE_UP = 6.0
"""Most seconds of such an overload, relative to those without a token."""
_MOST_SILENT = 0.6
"""Largest fraction of such an overload without a token."""
_SEVERAL = 2
"""Pauses from which they may be what limits a run that has a queue for long."""
_FALLEN = 0.5
"""Least part of the requests that waited because of them which had a first token before the next one."""
_SAME_RATE = 1.1
"""Most that the rate may have risen within WINDOW before it."""
_SERVED = 5.0
"""Least seconds of the load before it."""
_SHORT = 0.5
"""Fraction of a run for which an overload that did no harm may have lasted."""
_SOON = 0.25
"""The same for one after which the load counts as kept, and for one between times without a token."""
_SETTLED = 10.0
"""Least seconds of the same load after requests in flight stopped growing, and _SETTLED_SHARE of the growth."""
_SETTLED_SHARE = 0.5
_BALANCED_SHARE = 1.0
"""The same for one whose requests missed their objectives: more did not arrive than the engine served."""
_EXPLAINED = 0.5
"""Least fraction of the missed requests that an overload explains, to be what limited the run."""
_MOSTLY = 0.5
_EXHAUSTED = {EpisodeKind.KV, EpisodeKind.PREEMPTIONS}


def length(run: RunRecord, overload: Overload) -> float:
    """Return the seconds of an overload, up to the end of the run if it lasts."""
    return (run.until if overload.end is None else overload.end) - overload.begin


def is_long(run: RunRecord, overload: Overload, *, loaded: float) -> bool:
    """Whether an overload lasted long enough, of `loaded` seconds, even if pages are far apart."""
    by_client = any(each.kind in CLIENT_SIDE for each in overload.episodes)
    unsure = run.page_gap if run.page_gap > _SECOND_PAGE and not by_client else 0.0
    return length(run, overload) - unsure >= min(_SHORTEST, _SHORTEST_SHARE * loaded)


def passed(run: RunRecord, main: Overload, others: Sequence[Overload]) -> bool:
    """Whether an overload says little about the load.

    No limit of it was visible, there were no others, and it was that of the start of a load which the engine then
    served for much longer; or its requests were served within their objectives, and it was short, or only a growth of
    the requests in flight to what the load needs; or that growth ended, and the same load lasted for as long again; or
    a run that missed its objectives did so mostly at other times.
    """
    seen = {each.kind for each in main.episodes} & set(OVERLOAD)
    if not _explains_misses(run, [main, *others]):
        return True
    if not others and not seen & {EpisodeKind.BATCH, *_EXHAUSTED} and began_cold(run, main):
        return True
    if seen == {EpisodeKind.IN_FLIGHT} and not still_waits(run) and _settled(run, main, share=_BALANCED_SHARE):
        return True
    short = EpisodeKind.IN_FLIGHT not in seen and length(run, main) <= _SHORT * (run.until - run.load_since)
    if still_waits(run) or not (short or (seen == {EpisodeKind.IN_FLIGHT} and _settled(run, main))):
        return False
    if seen & _EXHAUSTED and not run.header.config.goodput:  # without an objective its harm is unknown
        return False
    first = run.history.first_from(main.begin)
    until = len(run.history) if main.end is None else run.history.up_to(main.end)
    started = run.share_in_time_of(first, until)  # the requests that waited may end much later
    return started >= KEPT_SHARE and share_kept(run, first, until) >= KEPT_SHARE


def _explains_misses(run: RunRecord, found: Sequence[Overload]) -> bool:
    """Whether half of the requests that missed the objectives of a run ended in its overloads, or soon after them.

    True of a run that kept its objectives, or whose misses were not counted.
    """
    first, stop = run.history.first_from(run.load_since), len(run.history)
    missed = run.history.column("judged") - run.history.column("good_due")
    if np.isnan(missed).any() or share_kept(run, first, stop) >= KEPT_SHARE:
        return True
    last = run.history.histogram("e2el", start=first, stop=stop).percentile(90)
    inside = np.zeros(stop, dtype=np.bool_)
    for each in found:
        end = run.until if each.end is None else each.end + last
        inside[run.history.first_from(each.begin) : run.history.up_to(end)] = True
    return float(missed[inside].sum()) >= _EXPLAINED * float(missed[first:].sum())


def shows_limit(run: RunRecord, main: Overload) -> bool:
    """Whether the engine itself shows a limit for half of an overload; requests may then wait in front of it too."""
    shown = (each.seconds(run.until) for each in main.episodes if each.kind not in CLIENT_SIDE)
    return max(shown, default=0.0) > _MOSTLY * length(run, main)


def was_severe(run: RunRecord, main: Overload) -> bool:
    """Whether an overload that passed was more than a short queue: requests piled up, or KV blocks ran out."""
    serious = any(each.kind in {EpisodeKind.IN_FLIGHT, *_EXHAUSTED} for each in main.episodes)
    return serious or length(run, main) > _SOON * (run.until - run.load_since)


def _settled(run: RunRecord, main: Overload, *, share: float = _SETTLED_SHARE) -> bool:
    """Whether the load lasted unchanged after an overload, so that growing requests in flight had reached a level."""
    if main.end is None:
        return False
    after = run.history.first_from(main.end)
    rates = run.history.column("request_rate", start=run.history.first_from(main.begin))
    stop = after - run.history.first_from(main.begin) + ticks_of(max(_SETTLED, share * length(run, main)))
    return stop <= rates.size and bool((rates[:stop] == rates[0]).all())


def stalls_caused(run: RunRecord, main: Overload, stalls: Sequence[Episode]) -> bool:
    """Whether an overload is what times without a token left to make up for, or lies between repeated ones."""
    return bool(stalls) and (follows_stalls(run, main) or lies_between(run, main, stalls))


def lies_between(run: RunRecord, main: Overload, stalls: Sequence[Episode]) -> bool:
    """Whether an overload without a visible limit ended soon, between repeated times without a token."""
    seen = {each.kind for each in main.episodes}
    if main.end is None or not stalls or seen & {EpisodeKind.BATCH, *_EXHAUSTED}:
        return False
    short = length(run, main) <= _SOON * (run.until - run.load_since)
    return short and stalls[0].begin < main.begin and main.end <= stalls[-1].begin


def follows_stalls(run: RunRecord, main: Overload) -> bool:
    """Whether an overload is what the engine had to make up for after times without a token, at a load that it served.

    Each of its parts began with one of them or just after it, it ended soon, and the rate was the same before; or the
    requests without a first token grew in several such times only.
    """
    first = max(run.load_since, main.begin - WINDOW)
    same = run.rate_at(main.begin) <= _SAME_RATE * run.rate_at(first) and main.begin - first >= _SERVED
    if not same or unserved_share(run):
        return False
    return _makes_up(run, main) or _grows_in_pauses(run, main)


def _makes_up(run: RunRecord, main: Overload) -> bool:
    end = run.until if main.end is None and run.sees_little else main.end  # few pages show the end too late
    if end is None:
        return False
    stalls = [each for each in map(_period(run), _pauses(run)) if each[0] < end]
    late = _MADE_UP + max(run.page_gap, 0.0 if run.header.engine is None else run.header.engine.page_age)
    parts = joined(map(_period(run), main.episodes))
    if not any(_begins_with(part, each, late) for each in stalls for part in parts):
        return False
    pauses = joined([*stalls, *silences(run.history, main.begin - WINDOW, end)])  # some explained by their prompts
    if not all(any(_begins_with(part, each, late) for each in pauses) for part in parts):
        return False
    silent = sum(until - begin for begin, until in pauses if until + late >= main.begin)
    if _silent_seconds(run, main) > _MOST_SILENT * length(run, main):  # slow prefills
        return False
    return sum(until - begin for begin, until in parts) <= _MOST_MADE_UP * silent


def _grows_in_pauses(run: RunRecord, main: Overload) -> bool:
    """Whether requests without a first token grew in several pauses, and between them fell by half of that or more.

    Under the load of the overload, from the first pause of it or just before it on.
    """
    pauses = [each for each in map(_period(run), _pauses(run)) if each[1] + _MADE_UP >= main.begin]
    loaded = np.flatnonzero(~np.isnan(run.history.column("request_rate")))
    if len(pauses) < _SEVERAL or not loaded.size:
        return False
    first = run.history.first_from(min(pauses[0][0], main.begin))
    stop = min(run.history.up_to(run.until if main.end is None else main.end), int(loaded[-1]) + 1)
    waiting = awaiting_first_token(run.history, first, max(stop, first))
    added = np.diff(waiting, prepend=waiting[:1])
    paused = np.zeros(added.size, dtype=np.bool_)
    for begin, until in pauses:
        paused[max(run.history.first_from(begin) - first, 0) : max(run.history.up_to(until) - first, 0)] = True
    grown = float(added[paused].sum())
    return grown > 0 and float(added[~paused].sum()) <= -_FALLEN * grown


def _period(run: RunRecord) -> Callable[[Episode], Period]:
    return lambda each: (each.begin, each.begin + each.seconds(run.until))


def _pauses(run: RunRecord) -> list[Episode]:
    """Return the times without a token that neither the prompts after them explain, nor a queue that is not seen.

    While the clocks of a GPU are throttled, the fastest prefill before is no measure of what a prompt takes. An
    engine that generates tokens in such a time, by pages of that time, serves other clients, or what lies before it
    holds them.
    """
    slowed = [(each.begin, run.until if each.end is None else each.end) for each in run.of_kind(EpisodeKind.THROTTLED)]
    stalls = [each for each in run.of_kind(EpisodeKind.STALL) if not any(each.overlaps(*part) for part in slowed)]
    current = run.header.engine is None or not run.header.engine.page_age
    return [
        each
        for each in stalls
        if not _only_waited(run, each)
        and not (current and generates(run.history, *_period(run)(each)))
        and (each.end is None or not is_prefill(run.history, each.begin, each.end))
    ]


def _only_waited(run: RunRecord, stall: Episode) -> bool:
    """Whether all requests in flight waited for their first token when no token arrived any more.

    At a server that servetop attached to they may be behind those of others, unless the engine exports its queue.
    """
    first = run.history.first_from(stall.begin)
    if run.header.config.engine.url is None or not np.isnan(run.history.column("waiting")).all():
        return False
    waiting = awaiting_first_token(run.history, first, first + 1)
    return bool((waiting >= run.history.column("in_flight", start=first, stop=first + 1)).all())


def _silent_seconds(run: RunRecord, main: Overload) -> float:
    """Return the seconds of an overload without a token, whatever explains them."""
    end = run.until if main.end is None else main.end
    parts = ((each.begin, each.begin + each.seconds(run.until)) for each in run.of_kind(EpisodeKind.STALL))
    return sum(max(min(until, end) - max(begin, main.begin), 0.0) for begin, until in parts)


def _begins_with(part: Period, pause: Period, late: float) -> bool:
    return pause[0] - _TOGETHER <= part[0] <= pause[1] + late


def stalls_apart_from(run: RunRecord, main: Overload | None) -> list[Episode]:
    """Return the times without a token, apart from those in an overload: prompts that wait are computed first.

    Empty if all are shorter than STALL_SECONDS, and the requests from the first of them on kept their objectives.
    Those that a prefill explains do not count.
    """
    stalls = _pauses(run)
    if main is not None and not follows_stalls(run, main):
        end = run.until if main.end is None else main.end
        stalls = [each for each in stalls if not each.overlaps(main.begin - WINDOW, end)]
    if not stalls or any(each.worst > STALL_SECONDS for each in stalls):
        return stalls
    return stalls if share_kept(run, run.history.first_from(stalls[0].begin), len(run.history)) < KEPT_SHARE else []
