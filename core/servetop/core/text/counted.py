"""Numbers with their nouns, in the singular or plural."""

from __future__ import annotations


def counted(number: int, what: str) -> str:
    """Format a number with its noun, such as `1 request` or `1,204 requests`."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def was_were(number: int) -> str:
    """Return the verb for a number of things: `was` or `were`."""
    return "was" if number == 1 else "were"
