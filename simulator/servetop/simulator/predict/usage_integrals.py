"""Client and engine measurements of a virtual run, accumulated per unit of work instead of per token."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from servetop.analysis.statistics.percentiles import Distribution
from servetop.simulator.model.sim_request import SimSequence
from servetop.simulator.model.work import Work


class UsageIntegrals:
    """Sums in seconds and tokens, and the inter-token gaps as runs: (first gap, growth, count, weight).

    All sequences of a batch receive their tokens together, so a step has one gap for each group of sequences that
    received their previous token together: those that were decoding, and those prefilled since.
    """

    def __init__(self) -> None:
        self.sequences: list[SimSequence] = []
        self.refused = 0
        self.output_tokens = 0
        self.prompt_tokens = 0
        self.started_at: float | None = None
        self.ended_at = 0.0
        self.busy_seconds = 0.0
        self.running_seconds = 0.0
        self.unfinished_seconds = 0.0
        self.finished: list[SimSequence] = []
        self.gaps: list[tuple[float, float, int, int]] = []
        self._groups: dict[float, int] = {}
        self._decoded_at = -1.0

    def add_request(self, seq: SimSequence) -> None:
        """Count a request that entered the queue."""
        self.sequences.append(seq)
        if self.started_at is None:
            self.started_at = seq.arrival

    def add_waiting(self, unfinished: int, seconds: float) -> None:
        """Add `seconds` for each unfinished request, for Little's law."""
        self.unfinished_seconds += unfinished * seconds

    def add_preempted(self, sequences: Iterable[SimSequence]) -> None:
        """Record the time of the last token of preempted sequences."""
        for seq in sequences:
            if seq.prefilled_at is None:
                continue
            seq.emitted_at = max(seq.prefilled_at, self._decoded_at)
            if seq.emitted_at in self._groups:
                self._groups[seq.emitted_at] -= 1

    def add_work(self, work: Work, steps: int, *, start: float, swapped_in: Iterable[SimSequence]) -> None:
        """Add the gaps and the time of completed work; `returned` are the sequences swapped in for it."""
        end = start + work.elapsed(steps)
        seconds = end - start
        self.busy_seconds += seconds
        self.running_seconds += seconds * (work.decoding + len(work.chunks))
        if work.decoding:
            first_end = start + work.elapsed(1)
            self.gaps.extend((first_end - at, 0.0, 1, count) for at, count in self._groups.items() if count)
            self.gaps.extend((first_end - seq.emitted_at, 0.0, 1, 1) for seq in swapped_in)
            if steps > 1:
                self.gaps.append((work.gap(2), work.slope, steps - 1, work.decoding))
            self._groups = {end: work.decoding}
            self._decoded_at = end
        for chunk in work.chunks:
            self._prefilled(chunk.sequence, end)

    def add_finished(self, finished: Iterable[SimSequence], now: float) -> None:
        """Add finished sequences."""
        for seq in finished:
            self.finished.append(seq)
            self.output_tokens += seq.output_tokens
            self.prompt_tokens += seq.prompt_tokens
            self._groups[now] -= 1
            self.ended_at = now

    def gap_distribution(self) -> Distribution:
        """Return the distribution of all inter-token gaps, in seconds."""
        table = np.array(self.gaps, dtype=np.float64).reshape(-1, 4)
        count = table[:, 2].astype(np.int64)
        step = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
        values = np.repeat(table[:, 0], count) + np.repeat(table[:, 1], count) * step
        return Distribution.of(values, weights=np.repeat(table[:, 3].astype(np.int64), count))

    def _prefilled(self, seq: SimSequence, end: float) -> None:
        if seq.prefilled_at != end:
            return
        if seq.generated > 1:
            self.gaps.append((end - seq.emitted_at, 0.0, 1, 1))
        self._groups[end] = self._groups.get(end, 0) + 1
