"""The result of verifying a recording: checks and verdict."""

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
    """The result, or the damage found, in one line."""


class VerifyVerdict(StrEnum):
    """The verdict on a file."""

    SOUND = "sound"
    """No tick is altered or missing, and their counts match the request rows."""
    NOT_SOUND = "not sound"
    """Some data of the recording are torn, missing or altered."""
    NOT_A_RECORDING = "not a recording"
    """The file lacks a recording's signature or tables, or cannot be opened."""


@dataclass(frozen=True, slots=True)
class Verified:
    """The checks of a file and their verdict."""

    verdict: VerifyVerdict
    checks: Sequence[VerifyCheck]
    """The checks in order; only the first if the file cannot be opened."""
