"""The sequences that decode together, with everything a run of decode steps needs in O(1) a step.

One global step counter stands in for all lengths: a member's length is `base + step`. Finishes are a calendar by
step; block needs are a histogram of the `block_size` phases, because a member needs a new block every
`block_size` steps. So k steps cost a few additions, whatever the batch size.
"""

from __future__ import annotations

import heapq

from servetop.simulator.scheduling.sim_request import SimSequence


class RunningBatch:
    """Decoding sequences, oldest arrival first (admission is FCFS and victims are the newest, so order is kept)."""

    __slots__ = ("_calendar", "_finish_steps", "_growth", "_size", "context", "members", "step")

    def __init__(self, block_size: int) -> None:
        self.step = 0
        self.members: dict[int, SimSequence] = {}
        self.context = 0
        self._size = block_size
        self._growth = [0] * block_size
        self._calendar: dict[int, dict[int, SimSequence]] = {}
        self._finish_steps: list[int] = []

    def __len__(self) -> int:
        return len(self.members)

    def join(self, seq: SimSequence, *, steps: int) -> None:
        """Add a prefilled sequence that decodes for `steps` steps; its last sampled token has no KV slot yet."""
        length = seq.length
        seq.base = length - self.step
        seq.finish_step = finish = self.step + steps
        self.members[seq.index] = seq
        self.context += length
        self._growth[(1 - seq.base) % self._size] += 1
        day = self._calendar.get(finish)
        if day is None:
            self._calendar[finish] = day = {}
            heapq.heappush(self._finish_steps, finish)
        day[seq.index] = seq

    def leave(self, seq: SimSequence) -> None:
        """Remove a member early, and update its `generated` count."""
        del self._calendar[seq.finish_step][seq.index]
        self._remove(seq)

    def newest(self) -> SimSequence:
        """The member that arrived last."""
        return self.members[next(reversed(self.members))]

    def length_of(self, seq: SimSequence) -> int:
        """Return the tokens of a member, including the last sampled one."""
        return seq.base + self.step

    def generated_by(self, seq: SimSequence) -> int:
        """Return the output tokens of a member so far."""
        return min(seq.base + self.step - seq.prompt_tokens, seq.output_tokens)

    def needs_block(self, seq: SimSequence) -> bool:
        """Whether this member's next step writes into a new block."""
        return (seq.base + self.step - 1) % self._size == 0

    def block_need(self, ahead: int = 0) -> int:
        """New blocks that the step after `ahead` more steps takes."""
        return self._growth[(self.step + ahead) % self._size]

    def blocks_for_steps(self, steps: int) -> int:
        """New blocks that the next `steps` steps take."""
        cycles, rest = divmod(steps, self._size)
        need = cycles * len(self.members)
        for ahead in range(rest):
            need += self._growth[(self.step + ahead) % self._size]
        return need

    def steps_within(self, free: int, *, slack: int) -> int:
        """Return how many steps fit, if each needs its own blocks and `slack` more free blocks."""
        budget = free - slack
        size, members = self._size, len(self.members)
        cycles = max(budget // members - 1, 0)
        budget -= cycles * members
        steps = cycles * size
        while budget >= (need := self._growth[(self.step + steps) % size]):
            budget -= need
            steps += 1
        return steps

    def steps_to_finish(self) -> int:
        """Steps until the next member finishes."""
        while not self._calendar[self._finish_steps[0]]:
            del self._calendar[heapq.heappop(self._finish_steps)]
        return self._finish_steps[0] - self.step

    def advance(self, steps: int) -> list[SimSequence]:
        """Run `steps` steps (never past the next finish); remove and return the members that finish."""
        self.step += steps
        self.context += steps * len(self.members)
        finished: list[SimSequence] = []
        while self._finish_steps and self._finish_steps[0] <= self.step:
            finished.extend(self._calendar.pop(heapq.heappop(self._finish_steps)).values())
        for seq in finished:
            self._remove(seq)
        return finished

    def _remove(self, seq: SimSequence) -> None:
        del self.members[seq.index]
        length = seq.base + self.step
        seq.generated = min(length - seq.prompt_tokens, seq.output_tokens)
        self.context -= length
        self._growth[(1 - seq.base) % self._size] -= 1
