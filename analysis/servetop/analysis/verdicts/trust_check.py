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
