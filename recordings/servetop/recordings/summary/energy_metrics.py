"""The energy of the GPUs while there was load, whole and for each output token and request."""

from __future__ import annotations

from typing import Any

from servetop.analysis.energy import Energy, energy_between
from servetop.recordings.read.run_columns import Period, RunColumns

ENERGY_NUMBERS = ("joules", "joules_per_output_token", "joules_per_request", "mean_power", "gpus", "known_share")
ENERGY = (*ENERGY_NUMBERS, "source")
"""Keys of `energy_figures`."""


def energy_figures(run: RunColumns, period: Period) -> dict[str, Any]:
    """ENERGY over the part of a period in which stages put load on the engine, warm-ups apart; None where not known.

    Tokens and requests are those of that time by the ticks: what arrived, and what ended well. Where the energy is
    known for a share of the time only, that share is taken to stand for the rest.
    """
    parts = _loaded(run, period)
    found = [energy for part in parts if (energy := energy_between(run.meters, part.start, part.until)) is not None]
    if not found:
        return dict.fromkeys(ENERGY)
    seconds = sum(part.until - part.start for part in parts)
    joules, known = sum(each.joules for each in found), _known(found, seconds)
    whole = joules / known
    within = [part.holds(run.load_ticks.start) for part in parts]
    tokens, requests = (sum(float(column[ticks].sum()) for ticks in within) for column in (run.output_tokens, run.ok))
    return {
        "joules": joules,
        "joules_per_output_token": whole / tokens if tokens else None,
        "joules_per_request": whole / requests if requests else None,
        "mean_power": whole / seconds,
        "gpus": max(each.devices for each in found),
        "known_share": known,
        "source": " and ".join(name for name in ("counter", "power") if any(name in each.source for each in found)),
    }


def _loaded(run: RunColumns, period: Period) -> list[Period]:
    """The stages' parts of a period, up to the last sign of life of any request."""
    alive = (run.in_flight > 0) | (run.output_tokens > 0) | (run.ok > 0)
    last = float(run.tick_ends[alive][-1]) if alive.any() else 0.0
    stages = [stage.period for stage in run.stages if not stage.change.warmup]
    parts = [Period(start=max(each.start, period.start), until=min(each.until, period.until, last)) for each in stages]
    return [part for part in parts if part.until > part.start]


def _known(found: list[Energy], seconds: float) -> float:
    return sum(each.known * each.seconds for each in found) / seconds
