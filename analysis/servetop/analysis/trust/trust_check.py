"""One check of the trust meter: a value, its limit and the result."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum


class CheckState(StrEnum):
    """The result of one check."""

    PASSED = "passed"
    BROKEN = "broken"
    EXEMPT = "exempt"
    """Beyond its limit, or without a meaning, for the reason given in `exemption`."""
    UNKNOWN = "unknown"


CLIENT_CHECKS = {
    "slip_p99": "slip",
    "late_share": "lateness",
    "loop_lag_p99": "loop lag",
    "sent_share": "sent rate",
}
"""What is compared within the client, in words, by check."""
ENGINE_CHECKS = {"littles_law": "requests", "tokens": "tokens", "ttft": "TTFT"}
"""What is compared with the engine, in words, by check."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustCheck:
    """One value, its limit and the result."""

    value: float
    limit: float
    state: CheckState
    exemption: str = ""
    """Why the check does not apply; empty unless exempt."""


def at_most(value: float, limit: float) -> TrustCheck:
    """Return the check of a value of either sign whose size has a limit."""
    return check(value, limit, abs(value) > limit)


def check(value: float, limit: float, beyond: bool, *, exemption: str = "") -> TrustCheck:
    """Return the check of a value that is `beyond` its limit or not; `exemption` is why the limit does not apply."""
    if math.isnan(value):
        return TrustCheck(value=value, limit=limit, state=CheckState.UNKNOWN)
    if beyond and exemption:
        return TrustCheck(value=value, limit=limit, state=CheckState.EXEMPT, exemption=exemption)
    return TrustCheck(value=value, limit=limit, state=CheckState.BROKEN if beyond else CheckState.PASSED)
