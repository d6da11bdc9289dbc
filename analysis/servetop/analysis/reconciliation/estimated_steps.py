"""The steps that the requests' own properties explain, that of the client, and what is left."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from servetop.analysis.reconciliation.adjusted_difference import AdjustedDifference, PartOfDifference
from servetop.analysis.reconciliation.defined_steps import DefinedFigure
from servetop.analysis.reconciliation.definitions import ReconciledMetric, mean_of
from servetop.analysis.reconciliation.waterfall import DifferenceStep, StepKind
from servetop.analysis.reconciliation.window_requests import BATCH, CACHED, LOAD, OUTPUT, PROMPT, WindowRequests

_LEAST_TOKENS = 1e-6
"""Difference of the prompt tokens of a batch below which its parts are not separated."""
_REPRODUCED = 0.5e-3
"""Part of a figure by which what a tool prints may differ from what its requests give, by its rounding."""
Windows = tuple[WindowRequests, WindowRequests]


def property_steps(
    metric: ReconciledMetric, found: AdjustedDifference, windows: Windows, *, scale: float
) -> Sequence[DifferenceStep]:
    """Return the steps of load, workload and cache; effects are multiplied by `scale` for the unit of the metric."""
    together, longer = _batch_parts(found, windows)
    loads = [(LOAD, found.parts.get(LOAD)), (BATCH, together)]
    return (
        _step(StepKind.LOAD, loads, [_load_text(found, windows), _batch_text(together, windows)], scale=scale),
        _workload(metric, found, windows, longer, scale=scale),
        _step(StepKind.CACHE, [(CACHED, found.parts.get(CACHED))], [_cache_text(found, windows)], scale=scale),
    )


def client_step(windows: Windows, *, scale: float) -> DifferenceStep:
    """Return the difference of what the clients add to the server's latencies."""
    a, b = (each.overhead * scale for each in windows)
    if math.isnan(a) or math.isnan(b):
        lacking = [name for name, each in zip("AB", windows, strict=True) if each.rows.server is None]
        return DifferenceStep(
            kind=StepKind.CLIENT,
            effect=None,
            evidence=f"the server's own times of the requests of {' and '.join(lacking) or 'A and B'} are missing",
        )
    unit = "ms" if scale != 1 else "s"
    return DifferenceStep(
        kind=StepKind.CLIENT,
        effect=b - a,
        evidence=f"client − server, request by request: A {a:+.3g} {unit}, B {b:+.3g} {unit}",
    )


def unexplained_step(rest: float, *, spread: float, figures: tuple[DefinedFigure, DefinedFigure]) -> DifferenceStep:
    """Return the last step; `spread` is half of its 95 % interval. All in the unit of the metric."""
    known = math.isfinite(spread)
    texts = []
    if known:
        inside = abs(rest) <= spread
        texts.append("within chance" if inside else "more than chance explains")
    for name, each in zip("AB", figures, strict=True):
        if abs(each.unreproduced) > _REPRODUCED * abs(each.reported):
            texts.append(f"{name} prints {each.unreproduced:+.3g} more than its requests give by its definition")
    return DifferenceStep(
        kind=StepKind.UNEXPLAINED,
        effect=rest,
        low=rest - spread if known else None,
        high=rest + spread if known else None,
        evidence="; ".join(texts) or "without an interval",
    )


def _step(
    kind: StepKind,
    parts: Sequence[tuple[str, PartOfDifference | None]],
    texts: Sequence[str],
    *,
    scale: float,
) -> DifferenceStep:
    """Return the sum of the parts that are known; their intervals are added, as if they erred together."""
    known = [part for _, part in parts if part is not None]
    evidence = "; ".join(filter(None, texts))
    if not known:
        return DifferenceStep(kind=kind, effect=None, evidence=evidence)
    low, effect, high = (
        sum(values) * scale for values in zip(*((p.low, p.effect, p.high) for p in known), strict=True)
    )
    bounded = math.isfinite(low) and math.isfinite(high)
    return DifferenceStep(
        kind=kind, effect=effect, low=low if bounded else None, high=high if bounded else None, evidence=evidence
    )


def _batch_parts(
    found: AdjustedDifference, windows: Windows
) -> tuple[PartOfDifference | None, PartOfDifference | None]:
    """Return what the prompt tokens of a batch explain, by the number of requests in it and by their length."""
    part = found.parts.get(BATCH)
    if part is None or not _differ(PROMPT, windows):
        return part, None
    totals = [each.mean_of_term(BATCH) for each in windows]
    counts = [float(each.batch.mean()) for each in windows]
    lengths = [total / count if count else 0.0 for total, count in zip(totals, counts, strict=True)]
    by_number = (counts[1] - counts[0]) * (lengths[0] + lengths[1]) / 2
    difference = totals[1] - totals[0]
    share = by_number / difference if abs(difference) > _LEAST_TOKENS else 1.0
    longer = _shared(part, 1 - share)
    learnt = PROMPT in found.parts or longer.low * longer.high > 0
    return _shared(part, share), longer if learnt else None


def _shared(part: PartOfDifference, share: float) -> PartOfDifference:
    spread = abs(share) * (part.high - part.low) / 2
    effect = part.effect * share
    return PartOfDifference(effect=effect, low=effect - spread, high=effect + spread)


def _batch_text(part: PartOfDifference | None, windows: Windows) -> str:
    if part is None:
        return ""
    a, b = (float(each.batch.mean()) for each in windows)
    return f"others within a step of the engine: {a:.2f} in A, {b:.2f} in B"


def _load_text(found: AdjustedDifference, windows: Windows) -> str:
    what = "other requests in flight when one was sent" if windows[0].closed else "others in flight at equal E2EL"
    if LOAD in found.inseparable:
        return f"{what}: {found.inseparable[LOAD]}"
    if LOAD not in found.parts:
        lacking = [name for name, each in zip("AB", windows, strict=True) if not each.rows.times_known]
        return f"{files_of(lacking)} the times at which requests were sent"
    a, b = (each.mean_of_term(LOAD) for each in windows)
    return f"{what}: {a:.2f} in A, {b:.2f} in B"


def files_of(names: Sequence[str]) -> str:
    """Return the beginning of a sentence about what the file of A, of B or of both does not have."""
    if len(names) == 1:
        return f"the file of {names[0]} does not have"
    return f"the files of {' and '.join(names)} do not have"


def _cache_text(found: AdjustedDifference, windows: Windows) -> str:
    if CACHED in found.inseparable:
        return f"cached tokens: {found.inseparable[CACHED]}, so their effect cannot be learnt"
    if CACHED in found.parts:
        a, b = (each.mean_of_term(CACHED) for each in windows)
        return f"cached tokens of a prompt: {a:,.1f} in A, {b:,.1f} in B"
    lacking = [name for name, each in zip("AB", windows, strict=True) if np.isnan(each.rows.cached).any()]
    return f"{files_of(lacking)} the cached tokens of each request"


def _workload(
    metric: ReconciledMetric,
    found: AdjustedDifference,
    windows: Windows,
    longer: PartOfDifference | None,
    *,
    scale: float,
) -> DifferenceStep:
    """Return the step of the lengths; `longer` is what the length of the prompts prefilled together explains."""
    parts, texts = [], []
    for name in (PROMPT, OUTPUT):
        part = found.parts.get(name)
        if part is None and name == OUTPUT and metric is ReconciledMetric.E2EL:
            part = _by_tpot(windows)
        parts.append((name, part))
        texts.append(_tokens_text(name, windows, reason="" if part else found.inseparable.get(name, "")))
    changed = [(name, part) for name, part in parts if part is None or _differ(name, windows)]
    if len([part for _, part in changed if part is None]) == len(changed) > 0:
        parts = changed  # nothing that differs has a known effect
    parts = [*parts, (BATCH, longer)]
    if longer is not None:
        texts.append("with those of the requests that are prefilled together")
    return _step(StepKind.WORKLOAD, parts, texts, scale=scale)


def _differ(name: str, windows: Windows) -> bool:
    a, b = (each.mean_of_term(name) for each in windows)
    return a != b


def _by_tpot(windows: Windows) -> PartOfDifference | None:
    """Return the time that more output tokens take at the mean TPOT of both runs, in seconds."""
    tpot = mean_of(np.concatenate([each.rows.tpot for each in windows]))
    a, b = (each.mean_of_term(OUTPUT) for each in windows)
    effect = tpot * (b - a)
    return PartOfDifference(effect=effect, low=effect, high=effect) if math.isfinite(effect) else None


def _tokens_text(name: str, windows: Windows, *, reason: str) -> str:
    a, b = (each.mean_of_term(name) for each in windows)
    title = f"{name} as the server counted them" if name == PROMPT and windows[0].server is not None else name
    if a == b:
        return f"{title}: {a:,.1f} in both"
    more = f"{title}: {a:,.1f} in A, {b:,.1f} in B"
    if name == PROMPT and (offset := _constant_offset(windows)):
        more += f" ({offset:+,.0f} in each request, as a chat template or special tokens add)"
    return f"{more}: {reason}, so their effect cannot be learnt" if reason else more


def _constant_offset(windows: Windows) -> float | None:
    """Return by how many tokens each prompt of B is longer, if that is the same for all; else None."""
    quantiles = np.linspace(0, 100, 21)
    a, b = (np.percentile(each.terms[PROMPT][:, 0], quantiles) for each in windows)
    offsets = b - a
    return float(offsets[0]) if np.ptp(offsets) == 0 and offsets[0] else None
