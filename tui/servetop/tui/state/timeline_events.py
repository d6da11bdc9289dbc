"""Events of a run as symbols on the timeline and as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from servetop.analysis.diagnosis.episode import Episode, EpisodeKind
from servetop.analysis.diagnosis.run_record import run_failure
from servetop.core.events import Action, Note, Severity
from servetop.core.text import formats
from servetop.core.text.sanitize import sanitize_line, sanitize_log_line
from servetop.tui.state.command_requests import described
from servetop.tui.state.frame import Frame


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineEvent:
    """One event: its time, its symbol and its text; an episode also has an end."""

    at: float
    symbol: str
    style: str
    text: str
    weight: int
    """The heaviest is drawn if several share a cell."""
    episode: Episode | None = None
    """The episode that begins; None for other events."""
    ends_run: bool = False
    """Whether it is the error that ends the run, such as an engine that was killed."""


_NOTES = {Severity.INFO: ("•", "muted", 1), Severity.WARNING: ("▲", "warn", 3), Severity.ERROR: ("✖", "bad", 4)}


_SERIOUS = (EpisodeKind.FAILING, EpisodeKind.STALL, EpisodeKind.ENGINE_ERROR)


def timeline_events(frame: Frame) -> list[TimelineEvent]:
    """Notes, marks, episodes and applied commands of the whole run, by time, including those after the time shown."""
    events = [_note(note) for note in frame.all_notes]
    events += [_episode(episode) for episode in frame.episodes]
    events += [
        TimelineEvent(
            at=command.at,
            symbol="●",
            style="key",
            text=sanitize_line(command.reply or described(command.action, command.value)),
            weight=2,
        )
        for command in frame.commands
        if command.action is not Action.MARK
    ]
    return sorted(events, key=lambda event: event.at)


def _episode(episode: Episode) -> TimelineEvent:
    severity = Severity.ERROR if episode.kind in _SERIOUS else Severity.WARNING
    symbol, style, weight = _NOTES[severity]
    text = sanitize_log_line(episode.text) or episode_text(episode)
    return TimelineEvent(at=episode.begin, symbol=symbol, style=style, text=text, weight=weight, episode=episode)


def episode_text(episode: Episode) -> str:
    """Return the episode in words, with its length and its worst value."""
    lasting = "" if episode.end is None else f" for {formats.clock(max(episode.end - episode.begin, 1.0))}"
    return f"{episode.kind.value}{lasting}{_WORST[episode.kind](episode)}"


_WORST: Mapping[EpisodeKind, Callable[[Episode], str]] = {
    EpisodeKind.FAILING: lambda episode: f", {episode.total:,.0f} in all",
    EpisodeKind.STALL: lambda episode: "",  # noqa: ARG005
    EpisodeKind.ENGINE_ERROR: lambda episode: "",  # noqa: ARG005
    EpisodeKind.CLIENT: lambda episode: f", up to {episode.worst:.0%} of requests late",
    EpisodeKind.KV: lambda episode: "",  # noqa: ARG005
    EpisodeKind.PREEMPTIONS: lambda episode: f", {episode.total:,.0f} in all, up to {episode.worst:.1f}/s",
    EpisodeKind.BATCH: lambda episode: f", up to {episode.worst:,.0f} waiting",
    EpisodeKind.QUEUE: lambda episode: f", up to {episode.worst:,.0f} waiting",
    EpisodeKind.AWAITING: lambda episode: f", up to {episode.worst:,.0f} requests",
    EpisodeKind.IN_FLIGHT: lambda episode: f", up to {episode.worst:,.0f}",
    EpisodeKind.LONG_PROMPTS: lambda episode: f", up to {episode.worst:,.0f} tokens in the mean",
    EpisodeKind.THROTTLED: lambda episode: "",  # noqa: ARG005
}
"""What follows the kind of an episode: its worst value or its total."""


def _note(note: Note) -> TimelineEvent:
    text = sanitize_line(note.text)
    if note.source == "user":
        return TimelineEvent(at=note.at, symbol="◆", style="yellow", text=text, weight=5)
    symbol, style, weight = _NOTES[note.severity]
    return TimelineEvent(
        at=note.at,
        symbol=symbol,
        style=style,
        text=f"{sanitize_line(note.source)}: {text}",
        weight=weight,
        ends_run=run_failure([note]) is not None,
    )
