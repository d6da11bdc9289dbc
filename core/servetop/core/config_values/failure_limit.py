"""The number of requests of a run that may fail before the run counts as failed."""

from __future__ import annotations

import re
from dataclasses import dataclass

from servetop.core.errors import UsageError

DEFAULT_MAX_FAILURES = "1%"
_COUNT = r"\d{1,12}"
_PERCENT = r"(\d{1,3}(?:\.\d{1,6})?) ?%"
_SHARE = r"0?\.\d{1,6}|[01]\.\d{0,6}"


@dataclass(frozen=True, slots=True)
class FailureLimit:
    """The largest number, or share, of requests that may fail in a run that counts as successful."""

    text: str
    """The limit as the user wrote it."""
    most: str
    """A number of requests, or a share between 0 and 1, in decimal digits."""
    is_share: bool

    @classmethod
    def parse(cls, text: str) -> FailureLimit:
        """Parse `10` (requests), `2%` or `0.02` (a share of the requests); UsageError for anything else."""
        stripped = text.strip()
        if re.fullmatch(_COUNT, stripped):
            return cls(stripped, stripped, is_share=False)
        if match := re.fullmatch(_PERCENT, stripped):
            share = f"{match[1]}e-2"
        else:
            share = stripped if re.fullmatch(_SHARE, stripped) else "2"
        if float(share) > 1:
            raise UsageError(f"--max-failures {text}: use a number of requests or a share, as in 10, 2% or 0.02")
        return cls(stripped, share, is_share=True)

    def is_exceeded(self, failed: int, requests: int) -> bool:
        """Whether more of the ended requests failed than the limit allows; exact: 1 of 100 is within 1 %."""
        from fractions import Fraction  # not needed by every start

        return failed > Fraction(self.most) * (requests if self.is_share else 1)
