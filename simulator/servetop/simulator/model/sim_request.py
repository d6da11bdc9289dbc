"""Token counts of a client's request, and the state of its sequence inside the engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class SimRequest:
    """Token counts of one request.

    `output_tokens` are actually generated, which the engine cannot know; it plans for `max_tokens`. `prefix` contains
    the hashes of the prompt's full blocks for a prefix cache, else nothing.
    """

    prompt_tokens: int
    output_tokens: int
    max_tokens: int = 0
    prefix: tuple[int, ...] = ()

    @property
    def limit(self) -> int:
        """Output tokens for which the engine must plan."""
        return max(self.max_tokens, self.output_tokens)


class SimSequence:
    """One request inside the engine. Times are seconds on the driver's clock; None until the event occurs."""

    __slots__ = (
        "arrival",
        "base",
        "cached_tokens",
        "computed",
        "emitted_at",
        "finish_step",
        "finished_at",
        "first_token_at",
        "generated",
        "index",
        "output_tokens",
        "preemptions",
        "prefilled_at",
        "prompt_tokens",
        "request",
        "scheduled_at",
        "shared",
        "sink",
        "swapped_blocks",
    )

    def __init__(self, request: SimRequest, *, index: int, arrival: float, sink: Any = None) -> None:
        self.request = request
        self.index = index
        self.arrival = arrival
        self.sink = sink
        self.prompt_tokens = request.prompt_tokens
        self.output_tokens = request.output_tokens
        self.generated = 0
        self.computed = 0
        self.base = 0
        self.finish_step = 0
        self.preemptions = 0
        self.cached_tokens = 0
        self.shared: tuple[int, ...] = ()
        self.swapped_blocks = 0
        self.emitted_at = arrival
        self.scheduled_at: float | None = None
        self.prefilled_at: float | None = None
        self.first_token_at: float | None = None
        self.finished_at: float | None = None

    @property
    def length(self) -> int:
        """Prompt and generated tokens; not updated while decoding, when `RunningBatch.length_of` is the length."""
        return self.prompt_tokens + self.generated
