"""Counts failed requests by reason."""

from __future__ import annotations

import math

from servetop.analysis.failure_reasons import FAILED, Failure, FailureTally
from servetop.recordings.format.request_codec import ENDED
from servetop.recordings.read.load_requests import Selection
from servetop.recordings.read.reader import RecordingReader

MAX_REASONS = 10
"""Maximum reasons in a summary; less frequent ones are counted as other reasons."""


def failure_reasons(reader: RecordingReader, selection: Selection) -> tuple[Failure, ...]:
    """Return the most frequent reasons, with counts and times of the first failure; empty if no request failed."""
    where, parameters = selection.where
    failed = f"status IN ({', '.join('?' * len(FAILED))})"
    rows = reader.request_rows(
        ("status", "error", "http_status", ENDED),
        where=" AND ".join([failed, where] if where else [failed]),
        parameters=(*map(str, FAILED), *parameters),
    )
    tally = FailureTally()
    for status, error, http_status, at in rows:
        text = error if isinstance(error, str) else None  # a torn page may contain any value
        failed_at = float(at) if isinstance(at, int | float) and math.isfinite(at) else None
        tally.add(status, text, http_status=http_status, at=failed_at)
    return tuple(tally.most_frequent(MAX_REASONS))
