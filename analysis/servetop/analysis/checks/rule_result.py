"""The result of a rule, and the figures that a broken rule makes worthless."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from servetop.analysis.checks.check_outcome import CheckOutcome


class Bearing(StrEnum):
    """The figures that a broken rule makes worthless."""

    FIGURES = "rates and latencies"
    TOKENS = "rates and latencies per token"
    TAILS = "percentiles from p99 on"
    NONE = "none"
    """The figures hold, but only for this length of this load."""

    def covers(self, key: str) -> bool:
        """Whether a figure depends on the rule; `key` as in the summary, without its stage."""
        key = key.removeprefix("steady.")
        if not _FIGURE.search(key) or key.startswith(_NOT_FIGURES):
            return False
        match self:
            case Bearing.FIGURES:
                return True
            case Bearing.TOKENS:
                return _OF_TOKENS.search(key) is not None
            case Bearing.TAILS:
                percentile = _PERCENTILE.match(key)
                return percentile is not None and float(percentile[1]) >= TAIL_FROM
            case Bearing.NONE:
                return False


TAIL_FROM = 99.0
_FIGURE = re.compile(r"_ms$|throughput$|goodput$|_per_output_token$|_per_request$|_per_s$|kv_usage$")
"""Keys of rates and latencies; the others count something, such as `completed`."""
_NOT_FIGURES = ("trust.", "server.")
"""What the client and the engine measure of themselves is true under any load."""
_OF_TOKENS = re.compile(r"_(?:tpot|itl)_ms$|output_throughput$|token_throughput$|_per_output_token$|tokens_per_s$")
_PERCENTILE = re.compile(r"p(\d+(?:\.\d+)?)_")


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleResult:
    """A rule applied to one stage of a recording."""

    name: str
    state: CheckOutcome
    bearing: Bearing
    value: float | None = None
    limit: float | None = None
    text: str
    """What was found; if the rule is not kept, also what to do."""
    stage: int | None = None
    """Number of the stage, as in the summary; None for the whole run."""
    label: str = ""
    """Label of the stage."""

    @property
    def strain(self) -> float:
        """How much of the limit is used, from 0; 0 without a value and a limit."""
        if not self.value or not self.limit:
            return 0.0
        return self.limit / self.value if self.bearing is Bearing.TAILS else abs(self.value) / self.limit
