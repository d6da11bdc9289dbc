"""Why an engine metric is missing, and how old the newest sample is."""

from __future__ import annotations

from servetop.analysis.diagnosis.run_record import last_restart
from servetop.analysis.engine_gauges import STALE_AFTER
from servetop.core.interfaces.run_source import NOT_IMPORTED, EngineFacts
from servetop.core.text import formats
from servetop.core.text.sanitize import sanitize_line
from servetop.tui.drawing.text_runs import Run, shortened
from servetop.tui.state.frame import Frame

_LONGEST_NAME = 24
_MISSED_SAMPLES = 2
"""Intervals between samples after which the next one is missing, for sources that are slower than the scrapes."""
_LAST_SCRAPE = 5.0
"""Seconds within which a run that restarts its engine samples it for the last time."""


def why_missing(frame: Frame, *names: str) -> str:
    """Return the reason that none of these fields of EngineSample is available; empty if at least one is."""
    facts, sample = frame.engine, frame.stats.engine
    if facts is None:
        return "the engine is not ready yet"
    if frame.header.imported is not None:
        return NOT_IMPORTED
    if sample is not None and any(getattr(sample, name) is not None for name in names):
        return ""
    if not set(names) <= set(facts.not_exported):
        return f"no metrics from {sanitize_line(facts.title)} yet"
    return f"not exported by {sanitize_line(facts.title)}"


def staleness(frame: Frame) -> str:
    """`sample 3.4 s old` if the newest engine sample is stale; empty if it is fresh or if there is none."""
    sample = frame.stats.engine
    if sample is None or frame.stats.at - sample.scrape_end <= STALE_AFTER:
        return ""
    return f"⚠ sample {formats.seconds(frame.stats.at - sample.scrape_end)} old"


def why_outdated(frame: Frame) -> str:
    """`⚠ engine restarting` or `⚠ no sample for 12.0 s` if the newest engine sample is not of now; else empty."""
    sample, at = frame.stats.engine, frame.stats.at
    if sample is None:
        return ""
    allowed = max(STALE_AFTER, _MISSED_SAMPLES * frame.stats.sample_interval)
    if frame.stats.is_watched_now if frame.watched else at - sample.scrape_end <= allowed:
        return ""
    if frame.end is None and _restarting(frame, since=sample.scrape_end - _LAST_SCRAPE, until=at):
        return "⚠ engine restarting"
    return f"⚠ no sample for {formats.seconds(at - sample.scrape_end)}"


def _restarting(frame: Frame, *, since: float, until: float) -> bool:
    """Whether the run restarts its engine: by its note on that, or by a stage without a load after one with a load."""
    noted = since <= last_restart([note for note in frame.notes if note.at <= until])
    loaded = [stage.request_rate is not None for stage in frame.stages if stage.at <= until]
    return noted or (any(loaded) and not loaded[-1])


def engine_name(facts: EngineFacts | None, *, otherwise: str) -> list[Run]:
    """Return the engine's title and version, such as `vLLM 0.32`."""
    if facts is None:
        return [(shortened(sanitize_line(otherwise), _LONGEST_NAME), "strong")]
    version = [] if facts.version is None else [(" " + shortened(sanitize_line(facts.version), _LONGEST_NAME), "")]
    return [(shortened(sanitize_line(facts.title), _LONGEST_NAME), "strong"), *version]
