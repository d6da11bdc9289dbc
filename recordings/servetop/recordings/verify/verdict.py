"""The result of verifying a recording: its checks and the verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyCheck:
    """One check and its result."""

    name: str
    sound: bool
    detail: str
    """The finding, or what is wrong, in one line."""


class VerifyVerdict(StrEnum):
    """The result of verifying a file."""

    SOUND = "sound"
    """Each tick is unaltered, none is missing, and their counts match the request rows."""
    NOT_SOUND = "not sound"
    """A recording in which something is torn, missing or altered."""
    NOT_A_RECORDING = "not a recording"
    """A file without a recording's marks or tables, or one that cannot be opened."""


@dataclass(frozen=True, slots=True)
class Verified:
    """The checks of a file and the verdict."""

    verdict: VerifyVerdict
    checks: Sequence[VerifyCheck]
    """The checks in order; only the first if the file cannot be opened."""
