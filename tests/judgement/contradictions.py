"""Which statements about one run contradict each other, whatever is true: by their names in `sentences.PATTERNS`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tests.judgement.statements import Statement

_OVERLOADS = (
    "KV-bound", "batch-bound", "rate above capacity", "long prompts", "overloaded", "engine or network overloaded",
)  # fmt: skip
_ELSEWHERE = ("client-bound", "network-bound", "concurrency-limited", "other traffic")
_LIMIT = {
    "KV fills", "KV holds", "KV holds too few", "batch full", "too fast", "longer prompts", "limit unknown", "more KV",
    "batch advice", "raise batch", "limit prompts", "batch limit",
}  # fmt: skip
"""Statements that the engine is at a limit, or what to do about it."""
_GROWTH = {"queue grows", "in flight grow", "still wait", "still grew", "left unserved"}
_FINE = {"kept up", "completed", "no queue", "raise load", "no more offered", "held"}
_BY_CAUSE = {
    **dict.fromkeys(_OVERLOADS, _FINE),
    **dict.fromkeys(_ELSEWHERE, _LIMIT | {"raise load"}),
    "headroom": _LIMIT | _GROWTH | {"client behind", "network", "held", "requests fail"},
}
"""Names of the statements that contradict a headline, by the cause that it names."""
_PAIRS = (
    ({"free slots"}, {"KV fills", "batch full"}),
    ({"no queue", "kept up", "completed"}, _GROWTH),
    ({"no failure"}, {"failed", "requests fail"}),
    ({"raise load"}, {"lower rate", "lower load", "lower concurrency"}),
)

_RATES = {"sustainable about", "sustainable between", "sustainable at least"}
_BY_REASON = (
    ("requests sent", _LIMIT | {"raise load", "kept up"}),
    ("other traffic", _RATES | {"raise load", "kept up"}),
    ("client TTFT mean", _LIMIT | {"raise load"}),
)
"""How a reason of the trust meter begins (late client, other clients, time outside the engine), and what it refutes."""


def contradictions(said: Iterable[Statement], *, reasons: Iterable[str] = ()) -> Iterator[str]:
    """Yield each pair of statements about a whole run that cannot both hold, and each that a trust reason refutes."""
    whole = [each for each in said if not each.live]
    for reason in reasons:
        for start, refuted in _BY_REASON:
            if reason.startswith(start):
                yield from (f"{reason} | {each.text}" for each in whole if each.name in refuted)
    causes = [each for each in whole if each.name == "cause"]
    for cause in causes[:1]:
        refused = _BY_CAUSE.get(cause.values["cause"] or "", set())
        yield from (f"{cause.text} | {each.text}" for each in whole if each.name in refused)
    for one, other in _PAIRS:
        yield from (
            f"{first.text} | {second.text}"
            for first in whole
            if first.name in one
            for second in whole
            if second.name in other
        )
