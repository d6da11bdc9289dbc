"""Finds lines of one summary that contradict each other: trust, steady state, figures, verdict and story."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from servetop.analysis.summary.summary_types import RunSummary
from servetop.analysis.trust.trust_verdict import TrustVerdict

ENGINE_CAUSES = ("KV-bound", "batch-bound", "rate above capacity", "long prompts", "overloaded")
"""Verdicts that blame the engine, or the load on it."""
KEPT_UP = r"kept up with the whole load|try a higher rate|sustainable ≥"
"""What is said of an engine that serves more than was offered."""
_KEPT_SHARE = 0.95
_HALF = 0.5


@dataclass(frozen=True, eq=False)
class Told:
    """A summary, and all that its story says."""

    summary: RunSummary

    @cached_property
    def text(self) -> str:
        """Headline, story and advice; empty without them."""
        story = self.summary.story
        return "" if story is None else "\n".join([story.headline, *(line.text for line in story.lines)])

    @property
    def cause(self) -> str:
        """The verdict."""
        return "" if self.summary.story is None else self.summary.story.cause

    def says(self, pattern: str) -> bool:
        """Whether the story says something, by a regular expression."""
        return re.search(pattern, self.text) is not None

    def number(self, pattern: str) -> float | None:
        """The number that a pattern finds in its first group; None without a match."""
        found = re.search(pattern, self.text)
        return None if found is None else float(found[1].replace(",", ""))

    @cached_property
    def steady_reasons(self) -> Sequence[str]:
        """Why stages have no steady state."""
        return [stage.steady.reason for stage in self.summary.stages if stage.steady.reason]


def contradictions(summary: RunSummary) -> list[str]:
    """Return each contradiction in words; empty if all lines of the summary can be true together."""
    told = Told(summary)
    return [rule.__doc__ or rule.__name__ for rule in RULES if any(rule(told))]


def _growth(told: Told) -> Iterator[bool]:
    """Requests in flight grew until the end of the load, although the engine kept up or the client limited them."""
    last = told.summary.stages[-1:]
    grew = any((stage.steady.reason or "").startswith("in flight grows by") for stage in last)
    yield grew and told.says(KEPT_UP)
    yield grew and told.cause == "concurrency-limited"


def _unserved(told: Told) -> Iterator[bool]:
    """Many requests were cancelled when the run ended, and the engine kept up."""
    requests = told.summary.requests
    yield requests.cancelled > 0.05 * requests.num_prompts and told.says(KEPT_UP)


def _held_back(told: Told) -> Iterator[bool]:
    """The concurrency limit held requests back, and the engine kept up with the whole load."""
    exempted = (told.summary.measured.trust.sent_exemption or "").startswith("held back by")
    yield exempted and told.says(KEPT_UP)


def _other_traffic(told: Told) -> Iterator[bool]:
    """Other clients load the server, and the verdict is about this load alone."""
    foreign = any(reason.startswith("other traffic") for reason in told.summary.measured.trust.reasons)
    yield foreign and (told.cause in (*ENGINE_CAUSES, "headroom", "unclear") or told.says("sustainable"))


def _late_client(told: Told) -> Iterator[bool]:
    """The client is late, and the story does not say so."""
    bound = told.summary.measured.trust.verdict == TrustVerdict.CLIENT_BOUND.value
    known = told.cause in ("client-bound", "failing", "engine failed", "other traffic")
    yield bound and not known and not told.says("client was late too|queued at the client")


def _between(told: Told) -> Iterator[bool]:
    """Most requests in flight are not in the engine, and the verdict blames the engine."""
    error = told.summary.measured.trust.littles_law_error
    replicas = told.summary.replicas or ()
    blamed = told.cause in ("KV-bound", "batch-bound", "rate above capacity")
    yield blamed and not replicas and error is not None and error < -_HALF


def _objectives(told: Told) -> Iterator[bool]:
    """Many requests missed the objectives, and the verdict is headroom."""
    requests = told.summary.requests
    if requests.request_goodput is None or not requests.request_throughput:
        return
    kept = requests.request_goodput / requests.request_throughput
    yield told.cause == "headroom" and kept < _KEPT_SHARE and not told.says("cold start")


def _failures(told: Told) -> Iterator[bool]:
    """Requests failed, and the story says that none did."""
    yield told.summary.requests.failed > 0 and told.says(r"\bno failure\b|, 0 failed")


def _queue(told: Told) -> Iterator[bool]:
    """The story has more requests waiting than the engine ever showed, or none although many waited."""
    most = told.summary.measured.server.max_waiting
    if most is None:
        yield told.says("the queue grows, to|nothing waits|(?<!exports )no queue")
        return
    shown = told.number(r"the queue grows[^,;]*, to ([\d,]+) request")
    yield shown is not None and shown > most + 0.5
    yield most > 2 and told.says(r"\bno queue(?! that lasted)") and not told.says("cold start")


def _blocks(told: Told) -> Iterator[bool]:
    """The story has more KV blocks in use than the table."""
    most = told.summary.measured.server.max_kv_usage
    shown = told.number(r"KV blocks at most ([\d.]+)%")
    yield shown is not None and (most is None or shown > 100 * most + 0.51)


def _preemptions(told: Told) -> Iterator[bool]:
    """The story has more preemptions than the table."""
    most, shown = told.summary.measured.server.preemptions, told.number(r"([\d,]+) preemption")
    yield shown is not None and (most is None or shown > most)


def _rates(told: Told) -> Iterator[bool]:
    """A rate is claimed as sustained that was never offered, or less than the steady window served in time."""
    offered = [stage.request_rate for stage in told.summary.stages if stage.request_rate is not None]
    at_least = told.number(r"sustainable ≥ ([\d.,]+)")
    yield at_least is not None and bool(offered) and at_least > 1.01 * max(offered)
    about, steady = told.number(r"sustainable ≈ ([\d.,]+)"), told.summary.steady.measured
    if about is None or steady is None or steady.requests.request_throughput is None:
        return
    good = steady.requests.request_goodput
    kept = good is None or good >= _KEPT_SHARE * steady.requests.request_throughput
    yield kept and about < 0.9 * steady.requests.request_throughput


def _causes(told: Told) -> Iterator[bool]:
    """The headline has one verdict, and the story another."""
    headroom = told.says("kept up with the whole load")
    yield headroom and told.cause not in ("headroom",)
    yield told.says("free KV blocks and batch slots") and told.cause != "rate above capacity"
    yield told.says("which limit holds") and told.cause != "overloaded"


RULES: Sequence[Callable[[Told], Iterator[bool]]] = (
    _growth, _unserved, _held_back, _other_traffic, _late_client, _between, _objectives, _failures, _queue, _blocks,
    _preemptions, _rates, _causes,
)  # fmt: skip
"""Each yields whether two lines contradict each other; its docstring says how."""
