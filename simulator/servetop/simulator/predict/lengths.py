"""How long prompts and answers are: the length distributions of the studies, seeded."""

from __future__ import annotations

import csv
import dataclasses
import functools
import random
from collections.abc import Iterator
from dataclasses import dataclass

from servetop.core.errors import UsageError
from servetop.core.system.package_data import package_path
from servetop.simulator.scheduling.sim_request import SimRequest

MODEL_LIMIT = 2048
"""Longest ShareGPT prompt or answer kept, as in the Run:ai study's filter."""
LENGTH_KINDS = ("fixed", "sharegpt", "capped-exponential", "normal")


@dataclass(frozen=True, slots=True, kw_only=True)
class SimLengths:
    """A distribution of prompt and output tokens.

    `fixed`: always `input_len` and `output_len`. `sharegpt`: pairs resampled from ShareGPT; with `output_mean` the
    outputs are raised to `output_spread` and scaled to that mean; only pairs within `input_cap` and `total_cap` are
    drawn (vLLM's benchmark: 1024 and 2048). `capped-exponential`: prompts fixed, outputs
    exponential of mean `output_mean`, drawn again above `output_cap` (Anyscale). `normal`: prompts uniform in
    1..`input_len`, outputs normal around `output_mean` with deviation `output_spread`, within 1..`output_cap`.
    `output_limit` is the max_tokens that clients ask for when the model may stop earlier; 0: the output itself.
    """

    kind: str = "fixed"
    input_len: int = 128
    output_len: int = 128
    output_mean: float = 0.0
    output_spread: float = 1.0
    output_cap: int = MODEL_LIMIT
    input_cap: int = MODEL_LIMIT
    total_cap: int = 2 * MODEL_LIMIT
    output_limit: int = 0

    def requests(self, count: int, *, seed: int) -> list[SimRequest]:
        """So many requests, the same for the same seed."""
        requests = self._requests(count, random.Random(seed))
        if not self.output_limit:
            return requests
        return [dataclasses.replace(request, max_tokens=self.output_limit) for request in requests]

    def _requests(self, count: int, source: random.Random) -> list[SimRequest]:
        match self.kind:
            case "fixed":
                return [SimRequest(self.input_len, self.output_len)] * count
            case "sharegpt":
                return self._sharegpt(count, source)
            case "capped-exponential":
                outputs = self._capped(count, source)
                return [SimRequest(self.input_len, output) for output in outputs]
            case "normal":
                return [self._normal(source) for _ in range(count)]
        raise UsageError(f"no length distribution {self.kind!r}: known are {', '.join(LENGTH_KINDS)}")

    def _sharegpt(self, count: int, source: random.Random) -> list[SimRequest]:
        fits = [pair for pair in sharegpt_pairs() if pair[0] <= self.input_cap and sum(pair) <= self.total_cap]
        pairs = [source.choice(fits) for _ in range(count)]
        if not self.output_mean:
            return [SimRequest(prompt, output) for prompt, output in pairs]
        raised = [output**self.output_spread for _, output in pairs]
        factor = self.output_mean * count / sum(raised)
        outputs = (min(max(round(value * factor), 1), MODEL_LIMIT) for value in raised)
        return [SimRequest(prompt, output) for (prompt, _), output in zip(pairs, outputs, strict=True)]

    def _capped(self, count: int, source: random.Random) -> Iterator[int]:
        """Rejection, not clipping: a draw above the cap is drawn again; a 0 becomes 1 token."""
        for _ in range(count):
            while (value := round(source.expovariate(1.0 / self.output_mean))) > self.output_cap:
                pass
            yield max(value, 1)

    def _normal(self, source: random.Random) -> SimRequest:
        prompt = source.randint(1, self.input_len)
        output = round(source.gauss(self.output_mean, self.output_spread))
        return SimRequest(prompt, min(max(output, 1), self.output_cap))


@functools.cache
def sharegpt_pairs() -> list[tuple[int, int]]:
    """Prompt and answer lengths of ShareGPT's first turns (data/README.md)."""
    path = package_path("servetop.simulator", "data/sharegpt_lengths.csv")
    with path.open(encoding="utf-8") as file:
        rows = csv.reader(file)
        next(rows)
        return [(int(prompt), int(output)) for prompt, output in rows]
