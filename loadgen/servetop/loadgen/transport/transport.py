"""The transport interface between a sender and the network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from servetop.loadgen.request.request_state import RequestState

LINGER_SECONDS = 0.05
"""How long a response may stay open after its end marker before the connection is closed."""


class Transport(Protocol):
    """Sends requests and updates their states; each is reported to the listener once when it ends.

    A request that was withdrawn is not reported.
    """

    def submit(self, request: RequestState) -> None:
        """Send a request as soon as a connection is available."""
        ...

    def withdraw(self, request: RequestState) -> None:
        """Forget a request and close its connection."""
        ...

    def keep_ready(self, connections: int) -> None:
        """Open connections ahead of demand until this many are idle or being opened."""
        ...

    def catch_up(self) -> None:
        """Parse everything that has been read."""
        ...

    async def close(self) -> None:
        """Close every connection."""
        ...


class RequestListener(Protocol):
    """Receives the events of a transport's requests."""

    def request_sent(self, request: RequestState) -> None:
        """Handle a request that was written to a socket for the first time."""
        ...

    def chunks_received(self, request: RequestState) -> None:
        """Handle bytes of a response that were parsed."""
        ...

    def response_complete(self, request: RequestState, at: float) -> None:
        """Handle a response that arrived completely at run time `at`; what it says is parsed after others like it.

        It has tokens, so that its request holds the server no longer, however it ended. `request_ended` follows. Not
        every transport tells.
        """
        ...

    def request_ended(self, request: RequestState) -> None:
        """Handle a request whose outcome is known."""
        ...

    def send_overdue(self) -> None:
        """Send what is due; called between the pieces of long work."""
        ...


TransportFactory = Callable[[RequestListener], Transport]
"""Creates a transport for a listener; called on the running event loop."""
