"""A part of a recorded watch, as a user names it: from a time of day, a date, or a while before its end."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from servetop.core.errors import UsageError
from servetop.core.units import parse_seconds

_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchWindow:
    """The part of a watch between two times."""

    start: float
    """Seconds since the start of the watch."""
    until: float
    began: datetime
    """When the watch began, in local time."""

    @classmethod
    def of(cls, since: str | None, until: str | None, *, wall_epoch_s: float, seconds: float) -> WatchWindow:
        """Parse the ends of the window of a watch of `seconds`; None is the start or the end of the watch.

        `14:00` is the newest such time before the end of the watch, `2026-11-30T14:00` that of the day, `30m` a while
        before the end. UsageError for another text, and if nothing of the watch lies between.
        """
        began = datetime.fromtimestamp(wall_epoch_s)
        start = 0.0 if since is None else _seconds("--since", since, began, seconds)
        stop = seconds if until is None else _seconds("--until", until, began, seconds)
        if not max(start, 0.0) < min(stop, seconds):
            first, last = (f"{began + timedelta(seconds=at):%Y-%m-%d %H:%M:%S}" for at in (0.0, seconds))
            raise UsageError(f"nothing was watched between --since and --until: the watch is from {first} to {last}")
        return cls(start=max(start, 0.0), until=min(stop, seconds), began=began)

    def overlap(self, begin: float, end: float) -> float:
        """Return the seconds of a span that lie within the window."""
        return max(min(end, self.until) - max(begin, self.start), 0.0)

    def time_text(self, at: float) -> str:
        """Return a time of the watch as `14:02:11`, with the date if the window has several days."""
        first, last, found = (self.began + timedelta(seconds=each) for each in (self.start, self.until, at))
        return f"{found:%H:%M:%S}" if first.date() == last.date() else f"{found:%Y-%m-%d %H:%M:%S}"


def _seconds(option: str, text: str, began: datetime, seconds: float) -> float:
    """Return a time as seconds since the start of the watch; UsageError if it is none."""
    end = began + timedelta(seconds=seconds)
    if "-" in text:
        try:
            return (datetime.fromisoformat(text).astimezone() - began.astimezone()).total_seconds()
        except ValueError:
            raise _refused(option, text) from None
    if ":" not in text:
        try:
            return seconds - parse_seconds(text)
        except UsageError:
            raise _refused(option, text) from None
    try:
        found = datetime.combine(
            end.date(), datetime.strptime(text, "%H:%M:%S" if text.count(":") > 1 else "%H:%M").time()
        )
    except ValueError:
        raise _refused(option, text) from None
    return ((found if found <= end else found - _DAY) - began).total_seconds()


def _refused(option: str, text: str) -> UsageError:
    return UsageError(
        f"{option} {text}: give a time (14:00), a date and time (2026-11-30T14:00), or a while before the end (1h)"
    )
