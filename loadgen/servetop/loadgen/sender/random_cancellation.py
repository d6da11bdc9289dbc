"""Clients that break off in the middle of an answer, as people do."""

from __future__ import annotations

import numpy as np

from servetop.loadgen.request.request_state import RequestState


class RandomCancellation:
    """Picks a share of the requests, each to be given up after a random number of its tokens; seeded."""

    def __init__(self, fraction: float, *, seed: int) -> None:
        self._fraction = fraction
        self._seed = seed
        self._patience: dict[RequestState, int] = {}

    def consider(self, exchange: RequestState) -> None:
        """A request is about to be sent: it may be one of them."""
        if not self._fraction:
            return
        generator = np.random.default_rng(
            (self._seed, 0xCA9, exchange.id)
        )  # the same ones however many senders there are
        if generator.random() < self._fraction:
            self._patience[exchange] = int(generator.integers(1, max(2, exchange.prompt.output_tokens)))

    def out_of_patience(self) -> list[RequestState]:
        """Those that have had as many tokens as they wait for; asked at every heartbeat, so up to 20 ms late."""
        if not self._patience:
            return []
        for exchange in self._patience:
            exchange.settle()
        over = [each for each, tokens in self._patience.items() if each.status or each.chunks.tokens >= tokens]
        for exchange in over:
            del self._patience[exchange]
        return [exchange for exchange in over if exchange.status is None]
