"""One cause, other than the change under test, for a difference between two runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from servetop.core.events import Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class Confounder:
    """A condition that differs between run A and run B."""

    kind: ConfounderKind
    text: str
    """One sentence with figures and units."""
    evidence: Mapping[str, tuple[float, float]]
    """The figures of A and B behind it by name, in seconds, tokens, hertz, bytes, or as fractions."""
    metrics: tuple[str, ...]
    """The metrics that it bears on."""
    severity: Severity = Severity.WARNING
    """ERROR if the figures of a run do not describe the engine."""


class ConfounderKind(StrEnum):
    """What differs."""

    CACHE = "cache"
    """One run found more of its prompts in the prefix cache."""
    LENGTHS = "lengths"
    """Prompts or outputs have other token counts, although the configuration is the same."""
    CLIENT = "client"
    """One client was too busy to send or to read on time."""
    KV_SIZE = "kv size"
    """The KV caches have different sizes."""
    GPU_CLOCKS = "gpu clocks"
    """A GPU ran at lower clocks under the same load."""
    REPLICAS = "replicas"
    """Replicas did not answer, or served very different shares."""
    FAILURES = "failures"
    """More requests failed in one run."""
    ENGINE_ERRORS = "engine errors"
    """One engine restarted, or logged errors."""
    LOAD = "load"
    """More requests or tokens arrived per second in one run, at one nominal rate."""
    OTHER_LOAD = "other load"
    """Other processes held memory on a GPU."""


LATENCIES = ("ttft", "tpot", "itl", "e2el")
RATES = ("throughput", "goodput")
ALL_METRICS = (*RATES, *LATENCIES)
