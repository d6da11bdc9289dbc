"""Which overloads say much about a run: not the shortest, and not those that passed without a visible limit."""

from __future__ import annotations

from servetop.analysis.judgement.capacity import KEPT_SHARE
from servetop.analysis.judgement.episode import Episode, EpisodeKind
from servetop.analysis.judgement.held_back import began_cold
from servetop.analysis.judgement.kept_load import share_kept
from servetop.analysis.judgement.marks import WINDOW
from servetop.analysis.judgement.overload import CLIENT_SIDE, OVERLOAD, Overload
from servetop.analysis.judgement.recovery import still_waits
from servetop.analysis.judgement.run_record import RunRecord

_SHORTEST = 5.0
"""Seconds; shorter overloads do not decide the verdict of a run, unless they are _SHORTEST_SHARE of its load."""
_SHORTEST_SHARE = 0.1
_SECOND_PAGE = 0.5
"""Seconds between pages from which the length of an overload may be that of its pages."""
_SHORT = 0.25
"""Fraction of a run for which an overload that did no harm may have lasted."""


def length(run: RunRecord, overload: Overload) -> float:
    """The seconds of an overload, up to the end of the run if it lasts."""
    return (run.until if overload.end is None else overload.end) - overload.begin


def is_long(run: RunRecord, overload: Overload, *, loaded: float) -> bool:
    """Whether an overload lasted long enough, of `loaded` seconds, even if pages are far apart."""
    by_client = any(each.kind in CLIENT_SIDE for each in overload.episodes)
    unsure = run.page_gap if run.page_gap > _SECOND_PAGE and not by_client else 0.0
    return length(run, overload) - unsure >= min(_SHORTEST, _SHORTEST_SHARE * loaded)


def passed(run: RunRecord, main: Overload, *, alone: bool) -> bool:
    """Whether an overload says little about the load.

    No limit of it was visible, it was the only one (`alone`), and that of the start of a load which the engine then
    served for much longer; or it was short, all of its requests were served, and they kept their objectives.
    """
    seen = {each.kind for each in main.episodes} & set(OVERLOAD)
    if alone and not seen & {EpisodeKind.BATCH, EpisodeKind.KV, EpisodeKind.PREEMPTIONS} and began_cold(run, main):
        return True
    harmless = seen <= {EpisodeKind.AWAITING, EpisodeKind.QUEUE, EpisodeKind.BATCH} and not still_waits(run)
    if not harmless or length(run, main) > _SHORT * (run.until - run.load_since):
        return False
    first = run.history.first_from(main.begin)
    until = len(run.history) if main.end is None else run.history.up_to(main.end)
    started = run.share_in_time_of(first, until)  # the requests that waited may end much later
    return started >= KEPT_SHARE and share_kept(run, first, until) >= KEPT_SHARE


def stalls_apart_from(run: RunRecord, main: Overload | None) -> list[Episode]:
    """Return the times without a token, apart from those in an overload: prompts that wait are computed first."""
    stalls = run.of_kind(EpisodeKind.STALL)
    if main is None:
        return stalls
    end = run.until if main.end is None else main.end
    return [each for each in stalls if not each.overlaps(main.begin - WINDOW, end)]
