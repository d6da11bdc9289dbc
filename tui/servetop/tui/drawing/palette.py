"""Names of the styles that drawings use; `dashboard.tcss` gives them colours for each theme.

The hues are those of Okabe and Ito ("Color Universal Design", 2008), told apart by all common kinds of colour vision.
Nothing is said by colour alone: series also differ in their dash, states also carry a symbol.
"""

from __future__ import annotations

HUES = ("sky", "orange", "green", "rose", "yellow", "vermilion")
"""Colours of series."""
STATES = ("good", "warn", "bad")
"""Colours of judgements, each used beside a symbol."""
HEAT = ("cool", "warm", "hot")
"""Of a heat map's cells, which also differ in their shade."""
TEXTS = ("muted", "strong", "faint", "key", "cursor", "title")
"""Weights of text: labels, main numbers, axes, keys to press, the position on the time line, names."""

STYLES = frozenset((*HUES, *STATES, *HEAT, *TEXTS))
"""All of them."""

THEME_NAMES = ("dark", "light", "contrast", "ansi", "mono")
"""What people call the themes, in the order of the theme key; `ansi` is the terminal's own 16 colours."""
