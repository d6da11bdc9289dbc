"""Estimates the tokens of a text without a tokenizer."""

from __future__ import annotations

CHARACTERS_PER_TOKEN = 4
"""Rule of thumb for English; such counts are marked as estimates."""


def estimated_tokens(text: str) -> int:
    """Characters divided by four, rounded up; at least one."""
    return max(1, -(-len(text) // CHARACTERS_PER_TOKEN))
