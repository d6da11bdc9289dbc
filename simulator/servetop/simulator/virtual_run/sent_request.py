"""A request of a virtual run, from its due time to its end."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from servetop.core.events import RequestRecord, RequestStatus
from servetop.simulator.predict.client_requests import ClientRequest


class SentRequest:
    """One request of the client; the engine knows it as the sink of a sequence."""

    __slots__ = (
        "_token_times",
        "clock",
        "due",
        "first_token_at",
        "limited",
        "number",
        "replica",
        "request",
        "sent",
        "stage",
    )

    def __init__(self, request: ClientRequest, *, number: int, stage: int, due: float, sent: float) -> None:
        self.request = request
        self.number = number
        self.stage = stage
        self.due = due
        self.sent = sent
        self.first_token_at: float | None = None
        self.limited = False
        self.replica: int | None = None
        self.clock: Callable[[], float] | None = None
        """Returns the time of each token; None if only the first and the last one need a time."""
        self._token_times: list[float] = []

    def token(self, *, last: bool) -> None:  # noqa: ARG002
        """Note the time of a token."""
        if self.clock is not None:
            self._token_times.append(self.clock())

    def record(
        self, status: RequestStatus, at: float, *, output_tokens: int = 0, error: str | None = None
    ) -> RequestRecord:
        """Return the record of the request, which ended at `at`.

        Each token is a chunk if there is a clock; otherwise the first token is one, and all others another.
        """
        http_status = int(error[5:8]) if error is not None and error.startswith("HTTP ") else None
        chunks = [(self.first_token_at or at, 1), (at, output_tokens - 1)][: min(output_tokens, 2)]
        if self.clock is not None:  # the record is made before the last token
            chunks = [(time, 1) for time in (*self._token_times, at)[:output_tokens]]
        return RequestRecord(
            id=self.number,
            stage=self.stage,
            due=self.due,
            sent=self.sent,
            status=status,
            first_token_at=self.first_token_at,
            done_at=at,
            prompt_tokens=self.request.prompt_tokens,
            output_tokens=output_tokens,
            error=error,
            http_status=http_status,
            replica=self.replica,
            chunk_times=np.array([time for time, _ in chunks], dtype=np.float64),
            chunk_tokens=np.array([tokens for _, tokens in chunks], dtype=np.int64),
        )
