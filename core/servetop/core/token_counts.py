"""What the server's count of an answer's tokens says about those of each chunk."""

from __future__ import annotations

from typing import Any

UNSEEN_SHARE = 0.02
"""Tokens that may have come without a text of their own: their gaps are counted to the next token's."""


def sizes_known(told: Any, counted: Any) -> Any:
    """Whether chunks whose tokens add up to `counted` are those of an answer of `told` tokens; of arrays too.

    One more is an end of text, which no chunk brings. What is far more came in chunks of several tokens, and which of
    them brought how many cannot be told.
    """
    return (told - counted <= 1) | (told - counted <= UNSEEN_SHARE * told)
