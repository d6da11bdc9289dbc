"""Which request numbers and prompts belong to one of several senders."""

from __future__ import annotations

from collections.abc import Iterator

from servetop.core.interfaces.dialect import Prompt
from servetop.workload.prompts.prompt_source import PromptSource


def part_of(count: int, rank: int, among: int) -> int:
    """Return the rank-th part of `count` slots divided among `among` senders: 10 among 4 are 3, 3, 2, 2."""
    return (count - rank + among - 1) // among


class Ownership:
    """Which request numbers belong to one sender as the working senders change."""

    def __init__(self, worker: int, working: tuple[int, ...], *, first: int) -> None:
        self._worker = worker
        self._spans = [(first, working)]
        """The working senders, each with the first number for which they count."""

    @property
    def working(self) -> tuple[int, ...]:
        """The senders that send requests now."""
        return self._spans[-1][1]

    def owns(self, number: int) -> bool:
        """Whether this sender sends the request of that number."""
        for first, working in reversed(self._spans):
            if number >= first:
                return bool(working) and working[number % len(working)] == self._worker
        return False

    def change(self, working: tuple[int, ...], *, unused_from: int, first: int) -> None:
        """Let `working` send the requests from `first` on; numbers from `unused_from` to there are left unused."""
        self._spans += [(unused_from, ()), (first, working)]


class PartitionedPrompts:
    """Iterates over the prompts of one sender's requests, each with its position in the run's prompt stream."""

    def __init__(self, source: PromptSource, ownership: Ownership, *, first: int) -> None:
        self._stream = source.prompts()
        self._ownership = ownership
        self.position = first
        """Number of the request that the next prompt of the stream belongs to."""

    def __iter__(self) -> Iterator[tuple[int, Prompt]]:
        return self

    def __next__(self) -> tuple[int, Prompt]:
        while True:
            number, prompt = self.position, next(self._stream)
            self.position += 1
            if self._ownership.owns(number):
                return number, prompt

    def skip(self, count: int) -> None:
        """Skip prompts of the stream."""
        for _ in range(count):
            next(self._stream)
            self.position += 1
