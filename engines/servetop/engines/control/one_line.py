"""What a server says, on one line of a message."""

from __future__ import annotations


def first_words(body: bytes, length: int = 60) -> str:
    """The beginning of a body on one line, for a message."""
    text = " ".join(body[: 4 * length].decode("utf-8", errors="replace").split())
    printable = "".join(letter for letter in text if letter.isprintable())
    return printable if len(printable) <= length else printable[:length] + "…"
