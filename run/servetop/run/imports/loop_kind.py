"""Whether requests were sent in an open loop, from when they were sent and ended."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from servetop.core.events import RequestRecord
from servetop.recordings.format.request_codec import last_known_at

_PROMPT = 0.02
"""Longest usual time between a response and the next request of a closed loop, in durations of a request."""


def is_open_loop(requests: Sequence[RequestRecord]) -> bool:
    """Whether requests were sent at times of their own, neither all at once nor each when another one had ended.

    With as many places as requests were sent before the first response, a closed loop sends its further requests, in
    their order, when the first, second, … response ends.
    """
    if not requests:
        return False
    starts = np.array([each.due if each.sent is None else each.sent for each in requests])
    ends = np.array([last_known_at(each) for each in requests])
    sent, ended, usual = np.sort(starts), np.sort(ends), float(np.median(ends - starts))
    places = int(np.searchsorted(sent, ended[0] - _PROMPT * usual))
    later = sent[max(places, 1) :]
    pauses = np.abs(later - ended[: later.size])
    return bool(later.size) and float(np.median(pauses)) > _PROMPT * usual
