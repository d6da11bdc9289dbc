"""Names of the styles that drawings use; `dashboard.tcss` assigns colours to them for each theme.

The hues are those of Okabe and Ito ("Color Universal Design", 2008), distinguishable with all common kinds of colour
vision. Colour is never the only distinction: series also differ in their dash, states also have a symbol.
"""

from __future__ import annotations

HUES = ("sky", "orange", "green", "rose", "yellow", "vermilion")
"""Colours of series."""
STATES = ("good", "warn", "bad")
"""Colours of verdicts, each used beside a symbol."""
HEAT = ("cool", "warm", "hot")
"""Colours of a heat map's cells, which also differ in their shade."""
AGES = ("age1", "age2", "age3", "age4")
"""Colours of a request's age, young to old, which also differ in their shade."""
BATCH = ("bright", "notch")
"""Colours of the batch film: prefill, and a pause after a preemption."""
BASELINE = ("baseline",)
"""Colour of the run that another one is compared with, whose lines also differ in their dash."""
TEXTS = ("muted", "strong", "faint", "key", "cursor", "title")
"""Weights of text: labels, main numbers, axes, keys, the position on the timeline, names."""

STYLES = frozenset((*HUES, *STATES, *HEAT, *AGES, *BATCH, *BASELINE, *TEXTS))
"""All style names."""

THEME_NAMES = ("dark", "light", "contrast", "ansi", "mono")
"""Short names of the themes, in the order of the theme key; `ansi` uses the terminal's own 16 colours."""
