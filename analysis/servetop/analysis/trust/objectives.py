"""Whether a request meets the objectives of `--goodput`, for senders, which count as requests end."""

from __future__ import annotations

from collections.abc import Mapping

from servetop.core.events import RequestRecord, RequestStatus


def meets_objectives(record: RequestRecord, limits: Mapping[str, float], *, from_due: bool = False) -> bool:
    """Return whether a request succeeded within all limits (seconds by metric), as `request_goodput` counts.

    A request without later tokens meets a limit of TPOT; one that reasoned and gave no answer misses one of TTFOT.
    With `from_due`, TTFT, TTFOT and E2EL include the time from due to sent.
    """
    if record.status is not RequestStatus.OK:
        return False
    waited = record.sent - record.due if from_due and record.sent is not None else 0.0
    return all(_is_within(record, metric, limit, waited) for metric, limit in limits.items())


def _is_within(record: RequestRecord, metric: str, limit: float, waited: float) -> bool:
    value = getattr(record, metric, None)
    if value is None:
        return metric != "ttfot" or record.ttft is None
    return bool(value + (0.0 if metric == "tpot" else waited) <= limit)
