"""Parses HTTP/1.1 responses with httptools, and once more with a rewritten head if it refuses the head."""

from __future__ import annotations

from typing import Protocol

from httptools import HttpParserCallbackError, HttpParserError, HttpParserUpgrade, HttpResponseParser

from servetop.loadgen.transport.response_head import HEAD_END, rewritten

_QUOTED_BYTES = 60


class ResponseCallbacks(Protocol):
    """Handles what httptools finds; it calls the other methods of its own that exist."""

    def on_message_begin(self) -> None:
        """Forget the head of an earlier response, or of this one before it was rewritten."""
        ...


class ResponseParser:
    """Parses the responses of one connection."""

    __slots__ = ("_callbacks", "_head", "_parser", "_refused")

    def __init__(self, callbacks: ResponseCallbacks) -> None:
        self._callbacks = callbacks
        self._parser = HttpResponseParser(callbacks)
        self._head = b""
        """The bytes of the final response's head that have arrived."""
        self._refused = False
        """httptools has refused the head, which has not arrived completely."""

    @property
    def status(self) -> int:
        """Status of the response that is being parsed, final or interim."""
        return self._parser.get_status_code()

    @property
    def should_keep_alive(self) -> bool:
        """Whether the connection may be used again after the response."""
        return self._parser.should_keep_alive()

    def expect_response(self) -> None:
        """Forget the head of the previous response."""
        self._head, self._refused = b"", False

    def feed(self, data: bytes, *, in_head: bool) -> str | None:
        """Parse what arrived and return why it is not valid; `in_head`: the final response's head was not complete."""
        if not in_head:
            self._head = b""
            return self._error(data)
        self._head += data
        if not self._refused:
            error = self._error(data)
            if error is None:
                return None
            if not self._head.lstrip(b"\r\n").startswith(b"HTTP/1."):
                return _other_protocol(self._head)
            self._refused = True
        if HEAD_END.search(self._head.lstrip(b"\r\n")) is None:
            return None
        self._parser = HttpResponseParser(self._callbacks)
        return self._error(rewritten(self._head))

    def _error(self, data: bytes) -> str | None:
        try:
            self._parser.feed_data(data)
        except HttpParserCallbackError:
            raise
        except HttpParserUpgrade:
            return "the server switches to another protocol (HTTP 101)"
        except HttpParserError as error:
            return f"the response is not valid HTTP/1.1 ({error})"
        return None


def _other_protocol(data: bytes) -> str:
    """Name the protocol of a response that does not start as HTTP/1.1 does, or quote its first line."""
    if data.startswith(b"\x15\x03"):
        return "the server answers with TLS: give an address that begins with https://"
    if data[3:5] == b"\x04\x00" and data[:2] == b"\x00\x00":
        return "the server speaks HTTP/2 only, as gRPC servers do: give the address of its HTTP/1.1 API"
    line = data.lstrip(b"\r\n").splitlines()[0][:_QUOTED_BYTES] if data.strip() else data[:_QUOTED_BYTES]
    return f"the response is not valid HTTP/1.1 (it starts with {line.decode('utf-8', 'replace')!a})"
