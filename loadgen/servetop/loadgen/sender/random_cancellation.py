"""Clients that break off in the middle of an answer, as people do."""

from __future__ import annotations

from servetop.loadgen.request.request_state import RequestState
from servetop.workload.random_cancellation import tokens_before_cancel


class RandomCancellation:
    """Picks a share of the requests, each to be given up after a random number of its tokens; seeded."""

    def __init__(self, fraction: float, *, seed: int) -> None:
        self._fraction = fraction
        self._seed = seed
        self._patience: dict[RequestState, int] = {}

    def consider(self, exchange: RequestState) -> None:
        """A request is about to be sent: it may be one of them."""
        tokens = tokens_before_cancel(
            self._fraction, seed=self._seed, number=exchange.id, output_tokens=exchange.prompt.output_tokens
        )
        if tokens is not None:
            self._patience[exchange] = tokens

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
