"""How long a text is where nobody counts its tokens."""

from __future__ import annotations

CHARACTERS_PER_TOKEN = 4
"""The usual rule of thumb for English; what is counted so is marked as an estimate."""


def estimated_tokens(text: str) -> int:
    """One for each four characters begun, at least one."""
    return max(1, -(-len(text) // CHARACTERS_PER_TOKEN))
