"""Energy of the GPUs under load: in total, per output token and per request."""

from __future__ import annotations

from servetop.analysis.columns.run_columns import Period, RunColumns
from servetop.analysis.energy import Energy, energy_between
from servetop.analysis.summary.summary_types import EnergySummary


def energy_summary(run: RunColumns, period: Period) -> EnergySummary:
    """Return the energy over the part of a period with load, except warm-ups.

    Tokens are those received, and requests those that succeeded, in the ticks of that time. If the energy is known for
    a fraction of the time only, it is extrapolated.
    """
    parts = _loaded(run, period)
    energies = [energy for part in parts if (energy := energy_between(run.meters, part.start, part.until)) is not None]
    if not energies:
        return EnergySummary()
    seconds = sum(part.until - part.start for part in parts)
    joules, known = sum(each.joules for each in energies), _known(energies, seconds)
    extrapolated = joules / known
    within = [part.contains(run.load_ticks.start) for part in parts]
    tokens, requests = (sum(float(column[ticks].sum()) for ticks in within) for column in (run.output_tokens, run.ok))
    return EnergySummary(
        joules=joules,
        joules_per_output_token=extrapolated / tokens if tokens else None,
        joules_per_request=extrapolated / requests if requests else None,
        mean_power=extrapolated / seconds,
        gpus=max(each.devices for each in energies),
        known_share=known,
        source=" and ".join(name for name in ("counter", "power") if any(name in each.source for each in energies)),
    )


def _loaded(run: RunColumns, period: Period) -> list[Period]:
    """Return the stages' parts of a period, up to the last tick with an active request."""
    active = (run.in_flight > 0) | (run.output_tokens > 0) | (run.ok > 0)
    last = float(run.tick_ends[active][-1]) if active.any() else 0.0
    stages = [stage.period for stage in run.stages if not stage.change.warmup]
    parts = [Period(start=max(each.start, period.start), until=min(each.until, period.until, last)) for each in stages]
    return [part for part in parts if part.until > part.start]


def _known(energies: list[Energy], seconds: float) -> float:
    return sum(each.known * each.seconds for each in energies) / seconds
