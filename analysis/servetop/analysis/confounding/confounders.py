"""All causes, other than the change under test, that can be seen in the measured conditions of two runs."""

from __future__ import annotations

from servetop.analysis.confounding.cache_rule import cache_confounder
from servetop.analysis.confounding.conditions import RunConditions
from servetop.analysis.confounding.confounder import Confounder, ConfounderKind
from servetop.analysis.confounding.lengths_rule import lengths_confounder
from servetop.analysis.confounding.machine_rules import (
    gpu_clocks_confounder,
    kv_size_confounder,
    other_load_confounder,
)
from servetop.analysis.confounding.service_rules import (
    client_confounder,
    engine_errors_confounder,
    failures_confounder,
    replicas_confounder,
)
from servetop.core.events import Severity

_RULES = (
    client_confounder,
    failures_confounder,
    engine_errors_confounder,
    replicas_confounder,
    lengths_confounder,
    kv_size_confounder,
    gpu_clocks_confounder,
    other_load_confounder,
)
_PROMPTS = {ConfounderKind.LENGTHS, ConfounderKind.REPLICAS}
"""These change which fraction of its prompts even a cold cache finds; others only how long it keeps them."""


def confounders(a: RunConditions, b: RunConditions) -> tuple[Confounder, ...]:
    """Return what differs between two runs of one load, or between two stages, the most severe first.

    What is configured differently is left to the comparison of the manifests. A different hit rate of the prefix cache
    is left out if it can be a consequence of another confounder.
    """
    found = [each for rule in _RULES if (each := rule(a, b)) is not None]
    if not _PROMPTS & {each.kind for each in found}:
        cache = cache_confounder(a, b, explained=bool(found))
        found += [] if cache is None else [cache]
    return tuple(sorted(found, key=lambda each: each.severity is not Severity.ERROR))
