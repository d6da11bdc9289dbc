"""Decides on the next load of a search from its recording, and says what was seen of the load before."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from servetop.analysis.series.tick_history import TickHistory
from servetop.analysis.trust.live_trust import live_trust
from servetop.analysis.trust.trust_verdict import TrustVerdict
from servetop.core.config import RunConfig, StageConfig
from servetop.core.events import Note, Severity
from servetop.core.interfaces.search_state import SearchState
from servetop.core.text import formats
from servetop.recordings.read.reader import RecordingReader
from servetop.run.search.answer_text import (
    interval_text,
    load_text,
    others_text,
    prior_text,
    restart_text,
    seen_text,
    subject_of,
)
from servetop.run.search.evidence_reader import EvidenceReader
from servetop.run.search.load_windows import merged
from servetop.run.search.recorded_probes import CLIENT_BOUND, OTHERS, RESTARTED, SOURCE, probe_note
from servetop.run.search.search_answer import TierAnswer
from servetop.run.search.search_evidence import Evidence, NextProbe, Probe, Purpose
from servetop.run.search.search_setup import SearchSetup
from servetop.run.search.search_states import SearchStates

_LATE_DECISIONS = 2
"""The client was the bottleneck at this many decisions in a row, at one load, when the search ends for it."""
_LEAST_TICKS = 12
"""Ticks of a probe from which the client is judged."""
_PURPOSES = {Purpose.MEASURE: "", Purpose.RECOVER: " until the backlog is gone", Purpose.CONFIRM: " to confirm it"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProbeDecision:
    """What the search does when a probe is over: keep another load, keep the same one for longer, or end."""

    next: NextProbe | None
    """None: the search is over."""
    continues: bool
    """The load before is kept for longer."""
    seen: str
    """A line with the figures of the load that is over, and the answer so far."""
    client_bound: str = ""
    """Why the client ends the search; empty if it does not."""
    state: SearchState | None = None
    """What is recorded of it; None before anything was measured."""
    warnings: tuple[Note, ...] = ()
    """What else is new: that the server restarted, or that other clients use it."""

    def note(self, stage: int, *, at: float) -> Note:
        """Return the note of a change of the load, to that of stage `stage`, or of the end of the search."""
        if self.next is not None:
            return probe_note(self.seen, at=at, stage=stage, purpose=self.next.purpose)
        if self.client_bound:
            return Note(at=at, severity=Severity.WARNING, source=SOURCE, text=self.client_bound, fact=CLIENT_BOUND)
        return Note(at=at, severity=Severity.INFO, source=SOURCE, text=self.seen)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FirstProbe:
    """What a session of a search begins with."""

    probe: NextProbe
    text: str
    at: float
    state: SearchState
    """What was known before."""

    def note(self, stage: int) -> Note:
        """Return the note of the load, as that of stage `stage`."""
        return probe_note(self.text, at=self.at, stage=stage, purpose=self.probe.purpose)


class ProbeDecider:
    """Reads the growing recording of a search; one call at a time."""

    def __init__(self, setup: SearchSetup, evidence: EvidenceReader, reader: RecordingReader) -> None:
        self._setup = setup
        self._reader = reader
        self._evidence = evidence
        self._states = SearchStates(setup)
        self._history = TickHistory()
        self._history_of = math.nan
        """The load that the ticks in the history are of."""
        self._late = 0
        self._restarted_at: float | None = None
        """The last restart of the server that a note has."""
        self._others = False
        """Whether a note has that other clients use the server."""

    @classmethod
    def of(cls, config: RunConfig, recording: Path) -> ProbeDecider:
        """Open a recording that is being written."""
        setup = SearchSetup.of(config)
        reader = RecordingReader.open(recording)
        return cls(setup, setup.evidence_reader(reader), reader)

    def first(self) -> FirstProbe:
        """Return what the session begins with."""
        evidence, search = self._evidence.read(), self._setup.search
        self._restarted_at, self._others = evidence.restarted_at, evidence.others is not None
        probe = self._setup.planner.next(evidence) or NextProbe(load=search.low, seconds=1.0)
        load = load_text(probe.load, search)
        begins = f"{prior_text(search)}the search begins at {load}"
        return FirstProbe(
            probe=probe,
            text=f"the search continues at {load}" if evidence.probes or evidence.earlier else begins,
            at=self._evidence.now,
            state=self._state(evidence, self._setup.planner.answers(evidence), probe),
        )

    def stage(self, probe: NextProbe) -> StageConfig:
        """Return the stage of a probe."""
        return self._setup.stage(probe)

    def decide(self) -> ProbeDecision:
        """Return what follows the current probe."""
        evidence = self._evidence.read()
        return replace(self._decided(evidence), warnings=tuple(self._warnings(evidence)))

    def _warnings(self, evidence: Evidence) -> Iterator[Note]:
        """Yield what no decision before has warned of."""
        warning = partial(Note, at=self._evidence.now, severity=Severity.WARNING, source=SOURCE)
        if evidence.restarted_at != self._restarted_at and evidence.restarted_at is not None:
            before = len(merged(evidence.earlier, purposes=tuple(Purpose)))
            yield warning(text=restart_text(evidence), fact=RESTARTED, count=before)
        if evidence.others is not None and not self._others:
            yield warning(text=others_text(evidence), fact=OTHERS)
        self._restarted_at, self._others = evidence.restarted_at, self._others or evidence.others is not None

    def _decided(self, evidence: Evidence) -> ProbeDecision:
        if not evidence.probes:
            found = self._setup.planner.next(evidence)
            then = "" if found is None else self._then(found)
            return ProbeDecision(next=found, continues=not evidence.earlier, seen=f"the server restarted{then}")
        current = evidence.probes[-1]
        answers = self._setup.planner.answers(evidence)
        seen = self._seen(evidence, answers)
        if reason := self._client_bound(current):
            state = self._state(evidence, answers, None)
            return ProbeDecision(next=None, continues=False, seen=seen, client_bound=reason, state=state)
        found = self._setup.planner.next(evidence)
        state = self._state(evidence, answers, found)
        same = found is not None and self._same_load(found, current)
        then = "" if found is None else self._then(found)
        return ProbeDecision(next=found, continues=same, seen=f"{seen}{then}", state=state)

    def _state(self, evidence: Evidence, answers: Sequence[TierAnswer], probe: NextProbe | None) -> SearchState:
        subject = subject_of(self._reader.header)
        return self._states.state(evidence, answers, at=self._evidence.now, subject=subject, probe=probe)

    def _same_load(self, found: NextProbe, current: Probe) -> bool:
        load = self._setup.stage(found)
        loads = (float(load.max_concurrency or 0), load.request_rate)
        return found.purpose is current.purpose and current.load in loads

    def _then(self, found: NextProbe) -> str:
        return f"; next {load_text(found.load, self._setup.search)}{_PURPOSES[found.purpose]}"

    def _seen(self, evidence: Evidence, answers: tuple[TierAnswer, ...]) -> str:
        setup, current = self._setup, evidence.probes[-1]
        load = f"{load_text(current.load, setup.search)} for {current.end - current.begin:.0f} s"
        shares = seen_text(evidence, setup.tiers.objectives, probe=current)
        left = formats.clock(max(0.0, setup.search.budget - evidence.seconds))
        intervals = " · ".join(interval_text(each, setup.search) for each in answers)
        return f"{load}: {shares} │ answer {intervals} │ {left} left"

    def _client_bound(self, current: Probe) -> str:
        """Return why the client could not keep this load; empty if it could, or may have been disturbed once."""
        if current.load != self._history_of:
            self._history, self._history_of, self._late = TickHistory(), current.load, 0
        for tick in self._evidence.ticks:
            if tick.start >= current.begin:
                self._history.append(tick)
        if len(self._history) < _LEAST_TICKS:
            return ""
        trust = live_trust(self._history, 0, len(self._history))
        self._late = self._late + 1 if trust.verdict is TrustVerdict.CLIENT_BOUND else 0
        if self._late < _LATE_DECISIONS:
            return ""
        load = load_text(current.load, self._setup.search)
        return f"client-bound at {load}: {', '.join(trust.reasons)}"

    def close(self) -> None:
        """Close the recording."""
        self._reader.close(merge_log=False)
