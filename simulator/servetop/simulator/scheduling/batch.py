"""The running batch: the sequences that decode together, advanced in O(1) per decode step.

One global step counter replaces all lengths: a member's length is `base + step`. Finishing members are kept by step;
block needs are a histogram of the `block_size` phases, because a member needs a new block every `block_size` steps.
So k steps cost a few additions, independent of the batch size.
"""

from __future__ import annotations

import heapq

from servetop.simulator.model.sim_request import SimSequence


class RunningBatch:
    """Decoding sequences, oldest arrival first: admission is FCFS and the newest is preempted first."""

    __slots__ = ("_block_phases", "_block_size", "_finish_steps", "_finishing", "context", "members", "step")

    def __init__(self, block_size: int) -> None:
        self.step = 0
        self.members: dict[int, SimSequence] = {}
        self.context = 0
        self._block_size = block_size
        self._block_phases = [0] * block_size
        self._finishing: dict[int, dict[int, SimSequence]] = {}
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
        self._block_phases[(1 - seq.base) % self._block_size] += 1
        finishing = self._finishing.get(finish)
        if finishing is None:
            self._finishing[finish] = finishing = {}
            heapq.heappush(self._finish_steps, finish)
        finishing[seq.index] = seq

    def leave(self, seq: SimSequence) -> None:
        """Remove a member early, and update its `generated` count."""
        del self._finishing[seq.finish_step][seq.index]
        self._remove(seq)

    def newest(self) -> SimSequence:
        """Return the member that arrived last."""
        return self.members[next(reversed(self.members))]

    def length_of(self, seq: SimSequence) -> int:
        """Return the tokens of a member, including the last sampled one."""
        return seq.base + self.step

    def needs_block(self, seq: SimSequence) -> bool:
        """Whether this member needs a new block for its next step."""
        return (seq.base + self.step - 1) % self._block_size == 0

    def block_need(self, ahead: int = 0) -> int:
        """Return the new blocks required by the step after `ahead` more steps."""
        return self._block_phases[(self.step + ahead) % self._block_size]

    def blocks_for_steps(self, steps: int) -> int:
        """Return the new blocks required by the next `steps` steps."""
        cycles, rest = divmod(steps, self._block_size)
        need = cycles * len(self.members)
        for ahead in range(rest):
            need += self._block_phases[(self.step + ahead) % self._block_size]
        return need

    def steps_within(self, free: int, *, slack: int) -> int:
        """Return how many steps fit into `free` blocks, if each requires `slack` more free blocks than it allocates."""
        budget = free - slack
        size, members = self._block_size, len(self.members)
        cycles = max(budget // members - 1, 0)
        budget -= cycles * members
        steps = cycles * size
        while budget >= (need := self._block_phases[(self.step + steps) % size]):
            budget -= need
            steps += 1
        return steps

    def steps_to_finish(self) -> int:
        """Return the steps until the next member finishes."""
        while not self._finishing[self._finish_steps[0]]:
            del self._finishing[heapq.heappop(self._finish_steps)]
        return self._finish_steps[0] - self.step

    def advance(self, steps: int) -> list[SimSequence]:
        """Run `steps` steps (never past the next finish); remove and return the members that finish."""
        self.step += steps
        self.context += steps * len(self.members)
        finished: list[SimSequence] = []
        while self._finish_steps and self._finish_steps[0] <= self.step:
            finished.extend(self._finishing.pop(heapq.heappop(self._finish_steps)).values())
        for seq in finished:
            self._remove(seq)
        return finished

    def _remove(self, seq: SimSequence) -> None:
        del self.members[seq.index]
        length = seq.base + self.step
        seq.generated = min(length - seq.prompt_tokens, seq.output_tokens)
        self.context -= length
        self._block_phases[(1 - seq.base) % self._block_size] -= 1
