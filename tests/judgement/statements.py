"""Splits what servetop says about a run into statements, by its text alone: headline, story, advice, verdict line."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

CAUSES = (
    "KV-bound", "batch-bound", "rate above capacity", "long prompts", "client-bound", "failing", "engine failed",
    "headroom", "other traffic", "concurrency-limited", "stalled", "no load", "queue growing",
    "overloaded", "objectives missed",
)  # fmt: skip
"""The names with which a headline begins."""
_NUMBER = r"[\d,]+(?:\.\d+)?"
_INTERVAL = rf"(?: \[{_NUMBER}, {_NUMBER}\])?"
_SECONDS = rf"{_NUMBER} (?:ms|s|min|h)"
_CLOCK = r"\d+(?::\d\d)+"
_OBJECTIVES = rf"(?P<objectives>(?:, |)\w+ ≤ {_SECONDS}(?:(?:, | and )\w+ ≤ {_SECONDS})*)"
_REPLICAS = r"\d+(?:, \d+)*(?: and \d+)?"
_AT_REPLICA = rf"(?: at replicas? {_REPLICAS} of \d+)?"
_AT_RATE = rf"(?: at (?P<rate>{_NUMBER}) req/s)?"

_EXPORT = r"(?:queue|KV usage|batch limit|metrics|preemptions)"
_NEITHER = "neither KV blocks nor the batch were full for most of the time"
_EXPORTS = rf"{_EXPORT}(?:(?:, | and ){_EXPORT})*"

PATTERNS: dict[str, str] = {
    "cause": rf"(?P<cause>{'|'.join(CAUSES)}){_AT_REPLICA}(?: from (?P<at>{_CLOCK}))?{_AT_RATE}",
    "quiet": r"(?:starting|idle|paused|draining|restarting|warming up|settling|unclear|run failed|nothing to judge)",
    "preemptions": rf"(?:first preemption; )?(?P<count>{_NUMBER}) (?:preemptions?|in all)(?:, up to {_NUMBER}/s)?",
    "worst TTFT": (
        rf"TTFT p99 (?:as felt )?(?:up to|at most) (?P<seconds>{_SECONDS})(?: as felt)?(?: in any ten seconds)?"
    ),
    "TTFT rises": rf"TTFT p99 as felt (?:rises from {_SECONDS} to|reaches) (?P<seconds>{_SECONDS})",
    "sustainable about": rf"sustainable ≈ (?P<rate>{_NUMBER}) req/s{_INTERVAL}(?: with {_OBJECTIVES})?",
    "sustainable at least": rf"sustainable ≥ (?P<rate>{_NUMBER}) req/s(?: with {_OBJECTIVES})?",
    "sustainable below": rf"sustainable < (?P<rate>{_NUMBER}) req/s(?: with {_OBJECTIVES})?",
    "within objective": rf"only (?P<percent>{_NUMBER})% of the requests had {_OBJECTIVES}",
    "served": (
        rf"(?P<ok>{_NUMBER}) requests? served(?: at {_NUMBER}(?: to {_NUMBER})? req/s)?"
        rf", (?P<failed>{_NUMBER}) failed"
    ),
    "failed": rf"(?P<failed>{_NUMBER}) of (?P<all>{_NUMBER}) requests failed",
    "KV peak": rf"KV blocks at most (?P<percent>{_NUMBER})% in use(?:, at replica \d+)?",
    "replica": (
        rf"(?:each of \d+ replicas|replica (?P<number>\d+)(?: of \d+(?: \([^)]*\))?)?|replicas {_REPLICAS} of \d+)"
    ),
    "replica queue": rf"at most {_NUMBER} waiting at replicas? {_REPLICAS}, {_NUMBER} elsewhere",
    "replica blocks": rf"KV blocks at most {_NUMBER}% in use at replicas? {_REPLICAS}, {_NUMBER}% elsewhere",
    "replica advice": (
        rf"try (?:more KV memory|a larger max_num_seqs|a lower rate) for replicas? {_REPLICAS}"
        rf", or a load balancer that sends it less"
    ),
    # causes
    "KV fills": (
        rf"the KV cache fills{_AT_RATE}"
        rf"(?:: its (?P<blocks>{_NUMBER}) blocks hold about (?P<sequences>{_NUMBER}) sequences?)?"
    ),
    "batch full": rf"the batch of (?P<size>{_NUMBER}) is full{_AT_RATE}",
    "too fast": rf"requests arrive faster than the engine serves them{_AT_RATE}",
    "free slots": r"with free KV blocks and batch slots",
    "longer prompts": rf"longer prompts arrive{_AT_RATE}, and requests wait behind their prefill",
    "client behind": rf"the client falls behind its schedule{_AT_RATE}",
    "late share": rf"up to (?P<percent>{_NUMBER})% of requests are late: the figures describe the client",
    "requests fail": r"requests fail",
    "no queue": r"no queue(?: that lasted)?",
    "at most waiting": rf"at most (?P<count>{_NUMBER}) waiting",
    "no failure": r"no failure",
    "kept up": r"the engine kept up with the whole load",
    "kept up after": r"the engine kept up with the whole load after its cold start",
    "completed": r"the engine completed the load",
    "cancelled": rf"(?P<count>{_NUMBER}) cancelled unserved",
    "batch limit": (
        rf"the engine runs at most (?P<size>{_NUMBER}) at once{_AT_RATE} while requests wait"
        rf": a batch limit of about {_NUMBER}"
    ),
    "limit unknown": (
        r"(?P<what>the queue grows|requests wait for their first token|more requests arrive than complete)"
        rf"{_AT_RATE}; which limit holds (?:it|them) is unknown(?:: (?:the engine exports no {_EXPORTS}|{_NEITHER}))?"
    ),
    "cold start": rf"cold start until (?P<until>{_CLOCK})(?:: TTFT p99 {_SECONDS})?",
    "throttled": (
        rf"the GPU's clocks are throttled for (?P<seconds>{_SECONDS}): the figures are those of a slower GPU"
    ),
    "held": (
        rf"up to (?P<count>{_NUMBER}) requests? queued at the client by its limit of (?P<limit>{_NUMBER}) in flight"
    ),
    "no more offered": r"the engine was offered no more than that limit",
    # what happened
    "queue grows": rf"the queue grows{_AT_RATE}, to (?P<count>{_NUMBER}) requests? at (?P<at>{_CLOCK})",
    "nothing waits": rf"nothing waits any more(?:, {_SECONDS} after the load fell)?",
    "unstarted": rf"up to (?P<count>{_NUMBER}) (?:requests? )?without a first token(?:, at (?P<at>{_CLOCK}))?",
    "in flight grow": rf"requests in flight grow from {_NUMBER} to (?P<count>{_NUMBER}) at (?P<at>{_CLOCK})",
    "all started": rf"no request waits for its first token any more(?:, {_SECONDS} after the load fell)?",
    "still wait": r"requests still wait at the end of the run",
    "shorter overload": rf"a shorter overload, for {_SECONDS}: (?P<cause>{'|'.join(CAUSES)})",
    "shorter overloads": rf"{_NUMBER} shorter overloads, from (?P<times>{_CLOCK}(?:, {_CLOCK})*)(?: and \d+ more)?",
    # advice
    "raise batch": r"(?:try |)(?:a larger max_num_seqs|raise max_num_seqs)",
    "batch advice": rf"(?:try |)max_num_seqs (?:≈ )?(?P<size>{_NUMBER})(?P<memory> or more KV memory)?",
    "more KV": r"(?:try |)more KV memory(?:, or shorter requests)?",
    "lower rate": rf"(?:try a lower rate(?: or more replicas)?|lower the rate(?: below {_NUMBER})?)",
    "lower objective": r"try a lower rate, or an objective that an idle engine keeps",
    "raise load": r"(?:try a higher (?:rate|concurrency)|raise the (?:rate|concurrency limit))",
    "limit prompts": r"(?:try a limit on the prompt length|limit the prompt length), or serve long prompts apart",
    "faster client": (
        r"(?:try a lower rate, more workers, or a client with more CPU"
        r"|the figures describe the client: lower the rate, or give the client more CPU)"
    ),
    "see log": r"look at the engine's log \(5\)",
    "raise limit": r"try a higher --max-concurrency, or a lower rate",
    "lower concurrency": r"try a lower concurrency, or an objective that an idle engine keeps",
    "longer run": r"try a longer run at one rate",
    "unshared server": r"measure a server that no other client uses: its queue and its tokens are in these figures",
    "wait": r"(?:hold the load: the KV cache is nearly full|hold the load until as many requests complete as arrive"
    r"|hold this stage until it is steady|press s to stop the run)",
    # the verdict line
    "keeps up now": r"the engine keeps up",
    "waits now": rf"(?P<count>{_NUMBER}) waiting",
    "nothing waits now": r"nothing waits",
    "running now": rf"running (?P<running>{_NUMBER}) of (?P<limit>{_NUMBER})",
    "foreign now": rf"about {_NUMBER} of {_NUMBER} requests in the engine are not from this run",
    "failing now": rf"{_NUMBER}% of requests",
    "held now": rf"(?P<count>{_NUMBER}) requests? queued at the client, limit (?P<limit>{_NUMBER}) in flight",
    "no token": (
        rf"(?:no token arrives for {_SECONDS} while requests are in flight"
        rf"|{_NUMBER} such pauses, from {_CLOCK}(?:, {_CLOCK})*(?:, …)?)"
    ),
    "late now": rf"requests sent {_SECONDS} late at p99",
    "unknown": (
        rf"(?:cause unknown without the engine's {_EXPORTS}|the engine does not export its queue"
        rf"|the engine's newest sample is {_SECONDS} old|{_NUMBER} of the {_NUMBER} requests that a verdict needs)"
    ),
    "reading": (
        rf"(?:up to {_NUMBER} % of blocks|full before, now {_NUMBER} % of blocks|KV (?:only )?{_NUMBER} %"
        rf"|{_NUMBER} preemptions(?:/s| in the last 10 s)|{_NUMBER} in flight(?:, up by {_NUMBER} within {_SECONDS})?"
        rf"|nothing new is sent|done {_NUMBER} (?:of {_NUMBER} )?req/s|{_NUMBER} prompt tokens/s"
        rf"|engine (?:holds|counts) [+−]{_NUMBER}% (?:requests|tokens) vs client"
        rf"|client TTFT mean {_SECONDS}, engine's own {_SECONDS}: more than a network explains)"
    ),
}
"""One regular expression for each statement; what is between two statements is `, `, `; ` or `: `."""
_COMPILED = {name: re.compile(pattern) for name, pattern in PATTERNS.items()}
_BETWEEN = re.compile(r"(?:, |; |: |$)")


class UnknownStatementError(Exception):
    """A sentence that no pattern knows: it would not be scored."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One thing that servetop says."""

    name: str
    """A key of `PATTERNS`."""
    text: str
    values: Mapping[str, str | None]
    at: float | None = None
    """The time of the story's line, or of the verdict line; None for the whole run."""
    live: bool = False
    """Whether it stood on the verdict line while the run went on."""
    page_age: float = 0.0
    """Seconds by which what is known of the engine may be old."""

    def number(self, name: str) -> float:
        """A number in the text, in its unit: seconds, percent, requests; NaN if it is not there."""
        return number_of(self.values.get(name))

    @property
    def said_at(self) -> float | None:
        """The time in the text, else that of the line."""
        return seconds_of(self.values["at"]) if self.values.get("at") else self.at


def statements_of(text: str, *, at: float | None = None, live: bool = False, page_age: float = 0.0) -> list[Statement]:
    """Split a line into its statements; UnknownStatementError if a part of it matches no pattern."""
    found: list[Statement] = []
    position = 0
    while position < len(text):
        match, name = max(_matches(text, position), key=lambda each: each[0].end(), default=(None, ""))
        if match is None:
            raise UnknownStatementError(f"{text[position:]!r} of {text!r}")
        found.append(Statement(name, match.group(), match.groupdict(), at=at, live=live, page_age=page_age))
        separator = _BETWEEN.match(text, match.end())
        position = match.end() if separator is None else separator.end()
    return found


def _matches(text: str, position: int) -> list[tuple[re.Match[str], str]]:
    """The patterns that match here up to a separator or the end."""
    matches = ((pattern.match(text, position), name) for name, pattern in _COMPILED.items())
    return [(match, name) for match, name in matches if match is not None and _BETWEEN.match(text, match.end())]


_UNITS = {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}


def number_of(text: str | None) -> float:
    """Read `1,024`, `0.5` or `34 ms` (in seconds); NaN for None."""
    if text is None:
        return math.nan
    value, _, unit = text.replace(",", "").partition(" ")
    return float(value) * _UNITS.get(unit, 1.0)


def seconds_of(clock: str | None) -> float:
    """Read `1:05` or `1:00:00` as seconds; NaN for None."""
    if clock is None:
        return math.nan
    total = 0.0
    for part in clock.split(":"):
        total = 60 * total + float(part)
    return total
