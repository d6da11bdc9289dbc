"""What the simulator saw of each request: when it arrived, when each token was written, and how it ended."""

from __future__ import annotations

import re
from array import array
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from servetop.core.events import RequestRecord, RequestStatus
from servetop.simulator.server.completion import Completion
from servetop.simulator.server.httpd import Connection, HttpRequest

_GENERATION = re.compile(r"(completions?|generate|generate_stream|responses|infer)$")
"""The end of the paths that generate tokens: a rejected POST there is a failed request, elsewhere it is another one."""
_FAILED = 400
"""The lowest HTTP status of an error."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class ProbeRequests:
    """Equal requests without tokens, such as probes of health, models or metrics."""

    method: str
    path: str
    status: int
    count: int


class RequestLog:
    """The requests that a server received, with instants in seconds by `clock`."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self._observed: list[ObservedRequest] = []
        self._others: Counter[tuple[str, str, int]] = Counter()

    def connect(
        self, route: Callable[[HttpRequest, Connection], None], *, connections: set[Connection]
    ) -> ObservedConnection:
        """Make a connection whose requests are observed (`serve.ConnectionFactory`)."""
        return ObservedConnection(route, connections=connections, log=self)

    @property
    def open_requests(self) -> int:
        """The number of requests whose response is not complete, and whose client is still connected."""
        return sum(each.done_at is None for each in self._observed)

    def others(self) -> tuple[ProbeRequests, ...]:
        """Return the requests that did not generate, most frequent first."""
        return tuple(
            ProbeRequests(method=method, path=path, status=status, count=count)
            for (method, path, status), count in self._others.most_common()
        )

    def records(self) -> list[RequestRecord]:
        """Return the requests that were to generate tokens, in order of arrival.

        `sent` and `due` are when the last byte of the request was read, `chunk_times` when bytes with tokens were
        handed to the socket. A request that is still in progress counts as cancelled now.
        """
        observed = sorted(self._observed, key=lambda each: each.arrived)
        return [each.record(number, now=self.clock()) for number, each in enumerate(observed)]

    def begin(self, request: ObservedRequest) -> None:
        """Add a request that generates."""
        self._observed.append(request)

    def end_other(self, request: ObservedRequest) -> None:
        """Add a request that ended without tokens: as failed if it was to generate, else as another one."""
        if request.status >= _FAILED and request.method == "POST" and _GENERATION.search(request.path):
            self._observed.append(request)
        else:
            self._others[request.method, request.path, request.status] += 1


@dataclass(slots=True, kw_only=True, eq=False)
class ObservedRequest:
    """One request from its arrival to its end; instants in seconds."""

    arrived: float
    method: str
    path: str
    completions: list[Completion] = field(default_factory=list)
    status: int = 200
    headers_at: float | None = None
    done_at: float | None = None
    whole: bool = False
    """Whether the response was complete."""
    streamed: bool = True
    """Whether tokens were written one by one; else there is no time of the first one."""
    tokens: int = 0
    """Tokens written so far."""
    chunk_times: array[float] = field(default_factory=lambda: array("d"))
    chunk_tokens: array[int] = field(default_factory=lambda: array("q"))

    def wrote(self, at: float) -> None:
        """Note that bytes of the response were written, with the tokens that were sampled since the last ones."""
        if self.headers_at is None:
            self.headers_at = at
        total = sum(each.sent for each in self.completions)
        if self.streamed and total > self.tokens:
            self.chunk_times.append(at)
            self.chunk_tokens.append(total - self.tokens)
        self.tokens = total

    def record(self, number: int, *, now: float) -> RequestRecord:
        """Return it as a record."""
        prompts = {each.prompt: each.generation.prompt_tokens for each in self.completions}
        return RequestRecord(
            id=number,
            stage=0,
            due=self.arrived,
            sent=self.arrived,
            headers_at=self.headers_at,
            first_token_at=self.chunk_times[0] if self.chunk_times else None,
            done_at=now if self.done_at is None else self.done_at,
            prompt_tokens=sum(prompts.values()),
            output_tokens=self.tokens,
            status=self._status(),
            error=f"HTTP {self.status}" if self.status >= _FAILED else None,
            http_status=self.status if self.headers_at is not None else None,
            chunk_times=np.array(self.chunk_times),
            chunk_tokens=np.array(self.chunk_tokens),
        )

    def _status(self) -> RequestStatus:
        if self.status >= _FAILED:
            return RequestStatus.ERROR
        return RequestStatus.OK if self.whole else RequestStatus.CANCELLED


class ObservedConnection(Connection):
    """A connection that notes each request in a log; instants are taken before the bytes are written."""

    def __init__(
        self,
        route: Callable[[HttpRequest, Connection], None],
        *,
        connections: set[Connection],
        log: RequestLog,
    ) -> None:
        super().__init__(self._routed, connections=connections)
        self._inner = route
        self._log = log
        self._received_at = 0.0
        self._arrivals: deque[float] = deque()
        self._current: ObservedRequest | None = None

    def data_received(self, data: bytes) -> None:
        """Note when bytes of a request were read."""
        self._received_at = self._log.clock()
        super().data_received(data)

    def on_message_complete(self) -> None:
        """Note when the last bytes of a request were read."""
        self._arrivals.append(self._received_at)
        super().on_message_complete()

    def expect(self, completion: Completion) -> None:
        """Note a completion of the current request."""
        current = self._current
        if current is not None:
            if not current.completions:
                self._log.begin(current)
            current.completions.append(completion)

    def respond(self, status: int, *args: object, **options: object) -> None:
        """Note the status of a complete response, which is not streamed."""
        if self._current is not None:
            self._current.status, self._current.streamed = status, False
        super().respond(status, *args, **options)  # type: ignore[arg-type]

    def send(self, data: bytes) -> None:
        """Note when bytes of the response are written."""
        if self._current is not None:
            self._current.wrote(self._log.clock())
        super().send(data)

    def finish(self) -> None:
        """Note the end of a response."""
        self._end(whole=True)
        super().finish()

    def connection_lost(self, exc: Exception | None) -> None:
        """Note a client that disconnected before its response was complete."""
        self._end(whole=False)
        super().connection_lost(exc)

    def _routed(self, request: HttpRequest, to: Connection) -> None:
        self._current = ObservedRequest(arrived=self._arrivals.popleft(), method=request.method, path=request.path)
        self._inner(request, to)

    def _end(self, *, whole: bool) -> None:
        current, self._current = self._current, None
        if current is None:
            return
        current.done_at, current.whole = self._log.clock(), whole
        if not current.completions:
            self._log.end_other(current)
