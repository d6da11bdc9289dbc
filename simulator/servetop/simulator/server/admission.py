"""Admits requests to the simulated engine, independent of the API dialect."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from servetop.core.clock import wall_clock
from servetop.simulator.model.settings import SimSpec
from servetop.simulator.model.sim_request import SimRequest, SimSequence
from servetop.simulator.server.choices import Choices
from servetop.simulator.server.completion import Completion, ResponseHeader
from servetop.simulator.server.generation_request import ApiError, GenerationRequest
from servetop.simulator.server.httpd import Connection
from servetop.simulator.server.realtime import RealTimeEngine
from servetop.simulator.server.tokens import block_hashes, draw_output_length


class CompletionFactory(Protocol):
    """Creates the completion of an admitted request, to which the engine then emits tokens."""

    def __call__(self, generation: GenerationRequest, connection: Connection, *, header: ResponseHeader) -> Completion:
        """Return a new completion; a streamed one sends its HTTP head immediately."""
        ...


CompletionFactories = tuple[CompletionFactory, CompletionFactory]
"""The factories of a streamed and of a complete response."""


class Admission:
    """Admits requests to one engine; `aborted` is called for each client that disconnects early."""

    def __init__(
        self,
        engine: RealTimeEngine,
        spec: SimSpec,
        *,
        served_names: tuple[str, ...],
        aborted: Callable[[], None],
        seed: int = 0,
    ) -> None:
        self._engine = engine
        self._spec = spec
        self._names = served_names
        self._aborted = aborted
        self._lengths = random.Random(seed)
        self._count = 0

    def resolve_model(self, model: object) -> str:
        """Return the served name of a request's `model`, the first one for None; ApiError (404) if unknown."""
        if model is None:
            return self._names[0]
        if not isinstance(model, str) or model not in self._names:
            raise ApiError(
                f"The model `{model}` does not exist.", status=404, error_type="NotFoundError", param="model"
            )
        return model

    def submit(
        self, generation: GenerationRequest, to: Connection, *, factory: CompletionFactory, model: str, prefix: str
    ) -> SimSequence:
        """Queue the request with a completion by `factory`; ApiError if it can never be served.

        The id of the response is `prefix` followed by a number.
        """
        request = self._request(generation)
        self._check_fits(request)
        self._count += 1
        completion = factory(
            generation, to, header=ResponseHeader(f"{prefix}{self._count:016x}", model, int(wall_clock()))
        )
        completion.seq = self._engine.submit(request, completion)
        assert completion.seq is not None  # `_check_fits` has raised otherwise
        to.on_disconnect = lambda: self._on_disconnect(completion)
        return completion.seq

    def submit_all(
        self,
        generations: list[tuple[int, GenerationRequest]],
        to: Connection,
        *,
        factory: CompletionFactory,
        model: str,
        prefix: str,
    ) -> None:
        """Queue several completions of one request, each with its prompt's number; none if one cannot be served."""
        requests = [self._request(generation) for _, generation in generations]
        for request in requests:
            self._check_fits(request)
        self._count += 1
        first = ResponseHeader(
            f"{prefix}{self._count:016x}", model, int(wall_clock()), choices=Choices(len(generations))
        )
        completions = [
            factory(generation, to, header=replace(first, index=index, prompt=prompt))
            for index, (prompt, generation) in enumerate(generations)
        ]
        for completion, request in zip(completions, requests, strict=True):
            completion.seq = self._engine.submit(request, completion)
        to.on_disconnect = lambda: self._on_disconnect(*completions)

    def _on_disconnect(self, *completions: Completion) -> None:
        for completion in completions:
            choices = completion.header.choices
            if completion.seq is not None and not (choices and choices.is_finished(completion.header.index)):
                self._engine.drop(completion.seq)
                self._aborted()

    def _check_fits(self, request: SimRequest) -> None:
        scheduler = self._engine.scheduler
        if not scheduler.accepts(SimSequence(request, index=-1, arrival=0.0)):
            cache = scheduler.blocks.total * scheduler.blocks.block_size
            total = request.prompt_tokens + request.limit
            raise ApiError(
                f"This engine's KV cache holds {cache} tokens. However, you requested {request.limit} output "
                f"tokens and your prompt contains {request.prompt_tokens} input tokens, for a total of "
                f"{total} tokens. Please reduce the length of the input prompt or the number of requested output "
                f"tokens. (parameter=input_tokens, value={request.prompt_tokens})",
                param="input_tokens",
            )

    def _request(self, generation: GenerationRequest) -> SimRequest:
        output = generation.max_tokens
        if not generation.ignore_eos:
            source = self._lengths if generation.seed is None else random.Random(generation.seed)
            output = draw_output_length(source, low=generation.min_tokens, high=generation.max_tokens)
        prefix: tuple[int, ...] = ()
        if self._spec.engine.prefix_cache:
            prefix = block_hashes(generation.prompt, self._spec.engine.block_size)
        return SimRequest(generation.prompt_tokens, output, generation.max_tokens, prefix)
