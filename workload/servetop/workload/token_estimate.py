"""Estimates the tokens of a text without a tokenizer."""

from __future__ import annotations

import math

CHARACTERS_PER_TOKEN = 4
"""Rule of thumb for English and for code; such counts are marked as estimates."""
_TOKENS_PER_SYMBOL, _LETTERS_PER_TOKEN = 0.6, 5
"""For texts of which a third or more are digits and punctuation, such as JSON."""
_TOKENS_BY_LEAD_BYTE = (
    (bytes(range(0xC2, 0xE0)), 0.37),  # Latin with accents, Greek, Cyrillic, Hebrew, Arabic
    (bytes(range(0xE0, 0xF0)), 0.75),  # Chinese, Japanese, Korean, Indic scripts, Thai
    (bytes(range(0xF0, 0xF5)), 2.5),  # emoji
)
"""Tokens of a character by the first byte of its UTF-8 form, between those of small and of large vocabularies."""
_NOT_ASCII = bytes(range(0x80, 0x100))
_SYMBOLS = bytes(byte for byte in range(0x21, 0x7F) if not chr(byte).isalpha())


def estimated_tokens(text: str) -> int:
    """Four characters a token for English and code, more tokens for other scripts, emoji and symbols; at least one."""
    data = text.encode("utf-8", "replace")
    if text.isascii():
        return max(1, math.ceil(_ascii_tokens(data)))
    others = sum((len(data) - len(data.translate(None, leads))) * tokens for leads, tokens in _TOKENS_BY_LEAD_BYTE)
    return max(1, math.ceil(_ascii_tokens(data.translate(None, _NOT_ASCII)) + others))


def _ascii_tokens(data: bytes) -> float:
    letters = len(data.translate(None, _SYMBOLS))
    symbols = len(data) - letters
    if symbols * 3 < len(data):
        return len(data) / CHARACTERS_PER_TOKEN
    return symbols * _TOKENS_PER_SYMBOL + letters / _LETTERS_PER_TOKEN
