"""The real-time driver: runs the scheduler's iterations at absolute deadlines on an injected clock.

Deadlines are sums of modelled durations, never of measured ones, so a late token does not delay later ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

from servetop.simulator.model.cost import CostModel
from servetop.simulator.model.sim_request import SimRequest, SimSequence
from servetop.simulator.model.work import Work, grid_after, on_grid
from servetop.simulator.scheduling.scheduler import Scheduler

STEPS_PER_TURN = 8
"""Overdue iterations that run in a row before the event loop reads and writes again."""

TOKENS_PER_LATENESS_SAMPLE = 16
"""Tokens of one iteration between two clock readings that measure their lateness."""


class Sink(Protocol):
    """Receives the tokens of a sequence. It must not call the engine, which is in the middle of an iteration."""

    def token(self, *, last: bool) -> None:
        """Receive one more token; `last` marks the final one."""
        ...


class Events(Protocol):
    """Receives the events for metrics; times are due times, not processing times."""

    def stepped(self, tokens: int) -> None:
        """Handle the end of an iteration that computed `tokens` tokens."""
        ...

    def emitted(self, count: int, *, due: float) -> None:
        """Handle `count` sent tokens that were due at `due`."""
        ...

    def first(self, seq: SimSequence, at: float) -> None:
        """Handle the first token of a sequence."""
        ...

    def gap(self, seconds: float, count: int) -> None:
        """Handle the inter-token latency of `count` sequences."""
        ...

    def finished(self, seq: SimSequence, at: float) -> None:
        """Handle the last token of a sequence."""
        ...


WakeAt = Callable[[float], None]


class RealTimeEngine:
    """One scheduler in real time; `wake_at` schedules a single call of `wake`, replacing an earlier one."""

    def __init__(self, scheduler: Scheduler, *, clock: Callable[[], float], wake_at: WakeAt, events: Events) -> None:
        self.scheduler = scheduler
        self._clock = clock
        self._wake_at = wake_at
        self._events = events
        self._work: Work | None = None
        self._start = 0.0
        self._idle_since = 0.0
        self._paused_until = -math.inf
        self._to_lose = 0
        self._done = 0
        self._steps = 0
        self._index = 0
        self._dropped: list[SimSequence] = []

    @property
    def kv_usage(self) -> float:
        """Fraction of the KV blocks in use after the last finished iteration, 0..1."""
        blocks, grown = self.scheduler.blocks, 0
        if self._work is not None and self._work.decoding and self.scheduler.reservation.allocates_on_growth:
            grown = self.scheduler.batch.blocks_for_steps(self._done)
        return (blocks.used + grown) / blocks.total

    @property
    def kv_blocks_used(self) -> int:
        """KV blocks in use after the last finished iteration."""
        return round(self.kv_usage * self.scheduler.blocks.total)

    @property
    def work(self) -> Work | None:
        """The current work; during `Events.stepped`, the work whose iteration has just ended."""
        return self._work

    @property
    def step_seconds(self) -> float:
        """Duration of the last finished iteration of the current work; 0 before the first one ends."""
        if self._work is None or not self._done:
            return 0.0
        return self._work.gap(self._done) + (self._work.delay if self._done == 1 else 0.0)

    def submit(self, request: SimRequest, sink: Sink) -> SimSequence | None:
        """Queue a request that arrives now; None if the engine can never serve it."""
        now = self._clock()
        self._catch_up(now)
        seq = SimSequence(request, index=self._index, arrival=now, sink=sink)
        if not self.scheduler.accepts(seq):
            return None
        self._index += 1
        self.scheduler.add(seq)
        self._changed(now, replan=self._work is not None and self._work.admits)
        return seq

    def drop(self, seq: SimSequence) -> None:
        """Drop a sequence whose client has disconnected; its blocks are freed at the next iteration boundary."""
        seq.sink = None
        self._dropped.append(seq)
        self._changed(self._clock(), replan=True)

    def set_cost(self, cost: CostModel) -> None:
        """Use another cost model from the next iteration on, as when the clocks of the GPU change."""
        self.scheduler.cost = cost
        self._changed(self._clock(), replan=True)

    def set_max_num_seqs(self, limit: int) -> None:
        """Change the batch-size limit from the next iteration on; running sequences stay."""
        self.scheduler.limits.max_num_seqs = limit
        self._changed(self._clock(), replan=True)

    def pause(self, seconds: float) -> None:
        """Compute, admit and send nothing for some seconds from now on."""
        now = self._clock()
        self._catch_up(now)
        self._paused_until = now + seconds
        self._start += on_grid(seconds)
        self._arm()

    def lose_blocks(self, count: int) -> None:
        """Lose KV blocks for good at the next iteration boundary; if too few are free, others as they become free."""
        self._to_lose += count
        self._changed(self._clock(), replan=True)

    def reset_prefix_cache(self) -> bool:
        """Empty the prefix cache; False while blocks are in use."""
        self._catch_up(self._clock())
        prefix = self.scheduler.prefix
        return not self.scheduler.blocks.used if prefix is None else prefix.clear()

    def wake(self) -> None:
        """Run the iterations that are due, and schedule the next call."""
        now = self._clock()
        for _ in range(STEPS_PER_TURN):
            if self._work is None or self._deadline() > now:
                break
            self._step()
        if self._work is None and (opens_at := self._opens_at()) <= now:
            self._plan(max(opens_at, self._idle_since))
        self._arm()

    def _changed(self, now: float, *, replan: bool) -> None:
        if self._work is None:
            self._drop_all()
            if now >= self._paused_until:
                self._plan(now)
            self._arm()
        elif replan:
            self._steps = min(self._steps, self._done + 1)

    def _catch_up(self, now: float) -> None:
        while self._work is not None and self._deadline() < now:
            self._step()

    def _deadline(self) -> float:
        assert self._work is not None
        return self._start + self._work.elapsed(self._done + 1)

    def _opens_at(self) -> float:
        """Return when an idle engine may admit the first waiting request; infinity if that depends on another event."""
        opens_at = max(self.scheduler.opens_at(), self._paused_until)
        return opens_at if opens_at > self._idle_since else math.inf

    def _arm(self) -> None:
        self._wake_at(self._opens_at() if self._work is None else self._deadline())

    def _plan(self, at: float) -> None:
        self._start = self._idle_since = grid_after(at)
        if self._to_lose:
            self._to_lose -= self.scheduler.blocks.lose(self._to_lose)
        self._work = self.scheduler.plan(self._start)
        self._done = 0
        self._steps = 0 if self._work is None else self._work.steps

    def _step(self) -> None:
        """End one iteration at its deadline: send its tokens and, after the last step, plan the next work."""
        work, end = self._work, self._deadline()
        assert work is not None
        self._done += 1
        self._events.stepped(work.decoding + sum(chunk.tokens for chunk in work.chunks))
        if work.decoding:
            self._emit_decoded(end)
        if self._done >= self._steps:
            self._complete(work, end)

    def _emit_decoded(self, end: float) -> None:
        """Send a token to every decoding sequence, except last tokens, which `_finish` sends."""
        emitted = same = 0
        since = math.nan
        batch = self.scheduler.batch
        step = batch.step + self._done
        for seq in batch.members.values():
            if seq.emitted_at != since:
                if same:
                    self._events.gap(end - since, same)
                since, same = seq.emitted_at, 0
            if seq.base + step - seq.prompt_tokens >= seq.output_tokens:
                continue
            same += 1
            seq.emitted_at = end
            if seq.sink is not None:
                seq.sink.token(last=False)
            emitted += 1
            if emitted == TOKENS_PER_LATENESS_SAMPLE:
                self._events.emitted(emitted, due=end)
                emitted = 0
        if same:
            self._events.gap(end - since, same)
        self._events.emitted(emitted, due=end)

    def _complete(self, work: Work, end: float) -> None:
        scheduler = self.scheduler
        finished = scheduler.complete(work, self._done, now=end)
        emitted = 0
        for chunk in work.chunks:
            seq = chunk.sequence
            if seq.prefilled_at != end:
                continue
            if seq.generated == 1:
                self._events.first(seq, end)
            else:
                self._events.gap(end - seq.emitted_at, 1)
            seq.emitted_at = end
            padded = seq.finished_at is None and seq.generated >= seq.output_tokens
            emitted += not padded
            if seq.sink is not None and seq.generated < seq.output_tokens:
                seq.sink.token(last=False)
        for seq in finished:
            emitted += self._finish(seq, end)
        self._events.emitted(emitted, due=end)
        self._drop_all()
        self._plan(end)

    def _finish(self, seq: SimSequence, end: float) -> int:
        prefilled_now = seq.prefilled_at == end
        if not prefilled_now:
            self._events.gap(end - seq.emitted_at, 1)
        if seq.sink is None:
            return 0
        self._events.finished(seq, end)
        seq.sink.token(last=True)
        return 0 if prefilled_now else 1

    def _drop_all(self) -> None:
        for seq in self._dropped:
            if seq.finished_at is None:
                self.scheduler.abort(seq)
        self._dropped.clear()
