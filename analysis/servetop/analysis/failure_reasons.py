"""Counts the failed requests of a run by reason."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from servetop.core.events import RequestStatus
from servetop.core.text.shorten import cut_short

FAILED = (RequestStatus.ERROR, RequestStatus.TIMEOUT, RequestStatus.TRUNCATED)
"""Statuses of failed requests; a request cancelled by the client did not fail."""
OTHER = "other reasons"
_MAX_REASONS = 200
"""Maximum distinct reasons: a server may send a different text in each error."""
_MAX_REASON_CHARS = 300
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_QUOTE = re.compile(r"; it starts with .*", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One reason of failure, and its number of requests."""

    reason: str
    count: int
    first_at: float | None
    """Run time of the first failure in seconds; None if unknown."""


class FailureTally:
    """Counts failed requests by reason, combining reasons that differ only in numbers or in the response they quote."""

    def __init__(self) -> None:
        self.total = 0
        self._reasons: dict[tuple[int | None, str], str] = {}
        self._counts: dict[tuple[int | None, str], int] = {}
        self._first: dict[tuple[int | None, str], float | None] = {}

    def add(self, status: str, error: str | None, *, http_status: int | None, at: float | None) -> None:
        """Count one failed request; without an error text, its status is the reason."""
        reason = cut_short(error or str(status), _MAX_REASON_CHARS)
        key = (http_status, _NUMBER.sub("0", _QUOTE.sub("", reason)))
        if key not in self._counts and len(self._counts) >= _MAX_REASONS:
            key, reason = (None, OTHER), OTHER
        self.total += 1
        self._reasons.setdefault(key, reason)
        self._counts[key] = self._counts.get(key, 0) + 1
        earlier = self._first.get(key)
        self._first[key] = at if earlier is None else earlier if at is None else min(at, earlier)

    def most_frequent(self, most: int) -> Sequence[Failure]:
        """Return at most `most` reasons, the most frequent first; their counts add up to `total`."""
        keys = sorted(self._counts, key=lambda key: (key[1] == OTHER, -self._counts[key]))
        failures = [Failure(reason=self._reasons[k], count=self._counts[k], first_at=self._first[k]) for k in keys]
        if len(failures) <= most:
            return failures
        rest = failures[most - 1 :]
        known = [each.first_at for each in rest if each.first_at is not None]
        others = Failure(reason=OTHER, count=sum(each.count for each in rest), first_at=min(known, default=None))
        return [*failures[: most - 1], others]
