"""The bottleneck of one time of a run, in one line with its evidence and advice."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """The bottleneck, its evidence and advice; `advice` is empty if there is nothing to do."""

    bottleneck: Bottleneck
    evidence: tuple[str, ...] = ()
    advice: str = ""

    @property
    def line(self) -> str:
        """The diagnosis in one line, such as `KV-bound: up to 99.7 % of blocks, 31 waiting → more KV memory`."""
        verdict = f"{self.bottleneck.value}: {', '.join(self.evidence)}" if self.evidence else self.bottleneck.value
        return f"{verdict} → {self.advice}" if self.advice else verdict


class Bottleneck(StrEnum):
    """What limits throughput, or the state of a run without a bottleneck."""

    STARTING = "starting"
    IDLE = "idle"
    PAUSED = "paused"
    DRAINING = "draining"
    RESTARTING = "restarting"
    WARMING_UP = "warming up"
    FAILED = "run failed"
    FAILING = "failing"
    STALL = "stalled"
    OTHERS = "other traffic"
    CLIENT = "client-bound"
    KV = "KV-bound"
    BATCH = "batch-bound"
    LONG_PROMPTS = "long prompts"
    CONCURRENCY = "concurrency-limited"
    QUEUE = "queue growing"
    OVERLOADED = "overloaded"
    """More requests arrive than complete, and none of them waits visibly."""
    PATH_OVERLOADED = "engine or network overloaded"
    """The same where the requests may wait in front of the engine."""
    MISSED = "objectives missed"
    SETTLING = "settling"
    HEADROOM = "headroom"
    NO_METRICS = "no metrics"
    """A watched server whose metrics cannot be read at the moment."""
    NO_RESPONSE = "no response"
    """One of several watched servers does not respond."""
    SLOWER = "slower than the others"
    """One of several watched servers takes much longer for each token than the others."""
    NOT_JUDGED = "not judged"
    """A watched server answers, and has no metrics that servetop knows."""
    WAITING = "requests wait"
    """Requests wait at a watched server, whose load is unknown."""
    SERVING = "serving"
    """A watched server serves, and nothing waits."""
    UNCLEAR = "unclear"
