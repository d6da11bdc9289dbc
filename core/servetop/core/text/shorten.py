"""Cuts long texts from outside, without cutting a secret in two."""

from __future__ import annotations

import re

_WORD_AT_END = re.compile(r"""[^\s"'`,;&<>()\[\]{}\x7f-\U0010ffff]+\Z""")
"""Characters that a key or a token may consist of."""


def cut_short(text: str, most: int) -> str:
    """Return the text, or its beginning with an ellipsis, at most `most` characters.

    A word is kept whole or left out, because the beginning of a key would not be recognised and redacted.
    """
    if len(text) <= most:
        return text
    kept = text[: max(most - 1, 0)]
    if _WORD_AT_END.match(text[len(kept)]):
        kept = _WORD_AT_END.sub("", kept)
    return f"{kept.rstrip()}…"
