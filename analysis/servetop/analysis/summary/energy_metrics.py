"""Energy of the GPUs while there was load: in all, for each output token and for each request."""

from __future__ import annotations

from servetop.analysis.columns.run_columns import Period, RunColumns
from servetop.analysis.energy import Energy, energy_between
from servetop.analysis.summary.summary_types import EnergySummary


def energy_summary(run: RunColumns, period: Period) -> EnergySummary:
    """Energy over the part of a period in which stages put load on the engine, warm-ups apart.

    Tokens and requests are those of the ticks of that time: received, and ended well. Where the energy is known for a
    share of the time only, that share stands for the rest.
    """
    parts = _loaded(run, period)
    found = [energy for part in parts if (energy := energy_between(run.meters, part.start, part.until)) is not None]
    if not found:
        return EnergySummary()
    seconds = sum(part.until - part.start for part in parts)
    joules, known = sum(each.joules for each in found), _known(found, seconds)
    whole = joules / known
    within = [part.holds(run.load_ticks.start) for part in parts]
    tokens, requests = (sum(float(column[ticks].sum()) for ticks in within) for column in (run.output_tokens, run.ok))
    return EnergySummary(
        joules=joules,
        joules_per_output_token=whole / tokens if tokens else None,
        joules_per_request=whole / requests if requests else None,
        mean_power=whole / seconds,
        gpus=max(each.devices for each in found),
        known_share=known,
        source=" and ".join(name for name in ("counter", "power") if any(name in each.source for each in found)),
    )


def _loaded(run: RunColumns, period: Period) -> list[Period]:
    """The stages' parts of a period, up to the last tick in which any request was active."""
    alive = (run.in_flight > 0) | (run.output_tokens > 0) | (run.ok > 0)
    last = float(run.tick_ends[alive][-1]) if alive.any() else 0.0
    stages = [stage.period for stage in run.stages if not stage.change.warmup]
    parts = [Period(start=max(each.start, period.start), until=min(each.until, period.until, last)) for each in stages]
    return [part for part in parts if part.until > part.start]


def _known(found: list[Energy], seconds: float) -> float:
    return sum(each.known * each.seconds for each in found) / seconds
