"""Rewrites the heads of HTTP/1.1 responses that a strict parser refuses, although RFC 9112 allows them."""

from __future__ import annotations

import re

HEAD_END = re.compile(rb"\r?\n\r?\n")
_FOLD = re.compile(rb"[ \t]*\r?\n[ \t]+")
_SPACED_LINES = re.compile(rb"(?:[ \t][^\n]*(?:\n|\Z))+")
_INTERIM = re.compile(rb"HTTP/1\.\d 1\d\d")


def rewritten(data: bytes) -> bytes:
    """Return the part of a response that starts with complete heads, the heads as a client reads them by RFC 9112.

    Lines may end with LF alone (section 2.2); lines that start with a space before the first field are dropped (2.2);
    blanks before a colon too (5.1); a folded value is one line (5.2); a Content-Length that is repeated with the same
    value is one (6.3); chunked coding counts, not a Content-Length beside it, and ends the connection (6.1).
    """
    data = data.lstrip(b"\r\n")
    end = HEAD_END.search(data)
    if end is None:
        return b""
    start_line, _, rest = data[: end.start()].replace(b"\r\n", b"\n").partition(b"\n")
    leading = _SPACED_LINES.match(rest)
    lines = _FOLD.sub(b" ", rest[leading.end() :] if leading else rest).split(b"\n")
    fields = [_field(line) for line in lines if line]
    head = b"".join(line + b"\r\n" for line in (start_line, *_framed_once(fields)))
    body = data[end.end() :]
    return head + b"\r\n" + (rewritten(body) if _INTERIM.match(start_line) else body)


def _field(line: bytes) -> tuple[bytes, bytes]:
    name, colon, value = line.partition(b":")
    return name.rstrip(b" \t") + colon, value.strip(b" \t")


def _framed_once(fields: list[tuple[bytes, bytes]]) -> list[bytes]:
    """Return the lines of a head with one statement of where the body ends, if the fields allow one."""
    lengths = {part.strip() for name, value in fields if _is_length(name) for part in value.split(b",")}
    codings = [value.lower() for name, value in fields if name.lower() == b"transfer-encoding:"]
    chunked = bool(codings) and codings[-1].rpartition(b",")[2].strip() == b"chunked"
    lines = [name + b" " + value for name, value in fields if not (_is_length(name) and (chunked or len(lengths) == 1))]
    if chunked and lengths:
        return [*lines, b"connection: close"]
    return lines if chunked or len(lengths) != 1 else [*lines, b"content-length: " + lengths.pop()]


def _is_length(name: bytes) -> bool:
    return name.lower() == b"content-length:"
