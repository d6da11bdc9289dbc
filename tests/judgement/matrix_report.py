"""The matrix of what runs say with less and less known about their engine, and every false statement."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from tests.judgement.judged import ONSET_WITHIN
from tests.judgement.matrix import Outcome
from tests.judgement.observed import OBSERVATIONS
from tests.judgement.scenario import Cause

TARGET_FALSE = 0.01
"""Share of the runs with a false statement, in every column."""
SCORES = ("true", "false", "silent")


def matrix_report(found: Sequence[Outcome]) -> list[str]:
    """The matrix, its shares, and one line for each false case; in Markdown."""
    kinds = list(dict.fromkeys(each.kind for each in found))
    columns = [name for name in OBSERVATIONS if any(each.observation == name for each in found)]
    by_kind = {kind: [each for each in found if each.kind == kind] for kind in kinds}
    runs = len({each.name for each in found})
    return [
        f"{runs:,} runs, judged {len(found):,} times. Each cell: true / false / silent.",
        "",
        f"| scenarios | runs | {' | '.join(columns)} |",
        f"|---|---:|{'---|' * len(columns)}",
        *(_row(kind, _cells(each, columns, _scores), count=_runs(each)) for kind, each in by_kind.items()),
        _row("**all**", _cells(found, columns, _scores), count=runs),
        *(_row(name, _cells(found, columns, share)) for name, share in SHARES.items()),
        "",
        *_false_cases(found),
    ]


def _runs(found: Iterable[Outcome]) -> int:
    return len({each.name for each in found})


def _row(name: str, cells: Iterable[str], *, count: int | None = None) -> str:
    return f"| {name} | {'' if count is None else count} | {' | '.join(cells)} |"


def _cells(found: Sequence[Outcome], columns: Sequence[str], cell: Callable[[Sequence[Outcome]], str]) -> list[str]:
    return [cell([each for each in found if each.observation == column]) for column in columns]


def _scores(found: Sequence[Outcome]) -> str:
    counts = (sum(each.score == score for each in found) for score in SCORES)
    return " / ".join(map(str, counts)) if found else "–"


def _share(values: Iterable[bool]) -> str:
    listed = list(values)
    return f"{sum(listed) / len(listed):.1%}" if listed else "–"


def _bounds(found: Sequence[Outcome]) -> str:
    total = sum(each.lower_bounds for each in found)
    return f"{sum(each.false_bounds for each in found)} of {total}" if total else "–"


def _rates(found: Sequence[Outcome]) -> str:
    total = sum(each.rates for each in found)
    return f"{sum(each.right_rates for each in found)} of {total}" if total else "–"


SHARES: dict[str, Callable[[Sequence[Outcome]], str]] = {
    "runs with a false statement": lambda found: _share(bool(each.false) for each in found),
    "cause named": lambda found: _share(
        each.named for each in found if each.cause not in (Cause.HEALTHY, Cause.UNCLEAR)
    ),
    "healthy runs with another cause": lambda found: _share(
        each.verdict not in (Cause.HEALTHY, None) for each in found if each.cause is Cause.HEALTHY
    ),
    "onset within 2 s": lambda found: _share(
        each.onset_error <= ONSET_WITHIN for each in found if not math.isnan(each.onset_error)
    ),
    "lower bounds above the truth": _bounds,
    "sustainable rates within 25 %": _rates,
}
"""The rows below the matrix."""


def _false_cases(found: Sequence[Outcome]) -> list[str]:
    lines = [f"- {each.name}, {each.observation}: {'; '.join(each.false)}" for each in found if each.false]
    unknown = dict.fromkeys(f"- not scored: {text}" for each in found for text in each.unknown)
    return [*unknown, *(["False statements:", "", *lines] if lines else ["No false statement."])]
