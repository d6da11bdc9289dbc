"""Units of engine work: one iteration with prefill, or several decode iterations of a fixed batch in closed form."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from servetop.simulator.model.sim_request import SimSequence

GRID = 2.0**40


def on_grid(seconds: float) -> float:
    """Round to the simulator's time grid of 2**-40 s (0.9 ps).

    Sums and integer multiples of grid values below 2**13 s are exact in a float, so k steps added one by one
    and k steps in closed form end at exactly the same time.
    """
    return round(seconds * GRID) / GRID


def grid_after(seconds: float) -> float:
    """Round up to the time grid; an idle engine starts its work on the grid."""
    return math.ceil(seconds * GRID) / GRID


@dataclass(frozen=True, slots=True)
class PrefillChunk:
    """A chunk of one prompt computed in one iteration: `tokens` tokens, after `start` tokens computed before."""

    sequence: SimSequence
    start: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Work:
    """`steps` iterations: after a delay, the first takes `first` seconds and each later one `slope` more than the last.

    `decoding` sequences receive a token at the end of every iteration. `chunks` are prefilled in the first iteration
    (then `steps` is 1). `admits` is whether an arrival during the work could change the next iteration.
    """

    first: float
    steps: int = 1
    slope: float = 0.0
    delay: float = 0.0
    decoding: int = 0
    chunks: tuple[PrefillChunk, ...] = field(default=())
    admits: bool = True

    def elapsed(self, steps: int) -> float:
        """Return the seconds from the start of the work to the end of its first `steps` iterations."""
        return self.delay + steps * self.first + self.slope * (steps * (steps - 1) // 2)

    def gap(self, step: int) -> float:
        """Duration in seconds of iteration `step`, counted from 1, excluding the delay."""
        return self.first + self.slope * (step - 1)

    def steps_by(self, span: float) -> int:
        """Return the number of iterations, from 1 to `steps`, after which `span` seconds have passed."""
        if span <= self.delay + self.first or self.steps == 1:
            return 1
        guess = self._solve(span - self.delay)
        guess = min(max(guess, 1), self.steps)
        while guess > 1 and self.elapsed(guess - 1) >= span:
            guess -= 1
        while guess < self.steps and self.elapsed(guess) < span:
            guess += 1
        return guess

    def _solve(self, span: float) -> int:
        if self.slope <= 0.0:
            return math.ceil(span / self.first)
        half = self.first - self.slope / 2
        return math.ceil((math.sqrt(half * half + 2 * self.slope * span) - half) / self.slope)
