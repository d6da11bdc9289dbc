"""Text runs: rows of text with the names of styles, which the style sheet colours.

All text is sanitized and never parsed as markup. Rows are rendered straight to strips: a chart has hundreds of runs,
four times a second.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style as RichStyle
from textual.css.styles import RulesMap
from textual.strip import Strip
from textual.style import Style
from textual.visual import RenderOptions, Visual

from servetop.core.text.sanitize import sanitize_line

_COUNTED_DIFFERENTLY = dict.fromkeys(
    [0x200D, 0xFE0E, 0xFE0F, *range(0x1F3FB, 0x1F400), *range(0xE0020, 0xE0080)]  # joiner, variants, skin, tags
)


@lru_cache(maxsize=4096)
def in_cells(text: str) -> str:
    """Sanitized text that has the same width on every terminal: emoji sequences are split into their parts.

    Terminals disagree on the width of a sequence such as woman, joiner, laptop; a row that is wider on one of them
    would overwrite its neighbours.
    """
    if text.isascii():
        return sanitize_line(text)
    return sanitize_line(text).translate(_COUNTED_DIFFERENTLY)


def shortened(text: str, width: int) -> str:
    """At most `width` terminal cells of printable text; truncated text ends in `…`."""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, max(width - 1, 0)).rstrip() + "…" if width > 0 else ""


Run = tuple[str, str]
"""Text, and the name of its style (`palette.STYLES`); an empty name is the panel's own style.

`a/b` is the colour of style `a` on a ground in the colour of `b`: the two halves of a cell with `▀`.
"""
TextRow = Sequence[Run]


class Lines(Visual):
    """Rows, top first; truncated at the right and at the bottom."""

    def __init__(self, rows: Iterable[TextRow]) -> None:
        self.rows = tuple(rows)

    @property
    def plain(self) -> str:
        """The text alone, one line per row."""
        return "\n".join("".join(text for text, _ in row) for row in self.rows)

    def get_optimal_width(self, rules: RulesMap, container_width: int) -> int:  # noqa: ARG002
        return max((row_width(row) for row in self.rows), default=0)

    def get_height(self, rules: RulesMap, width: int) -> int:  # noqa: ARG002
        return len(self.rows)

    def render_strips(self, width: int, height: int | None, style: Style, options: RenderOptions) -> list[Strip]:
        """Strips of exactly `width` cells."""
        base = style.rich_style
        styles: dict[str, RichStyle] = {"": base}

        def styled(name: str) -> RichStyle:
            if name not in styles:
                colour, _, ground = name.partition("/")
                own = (style + options.get_style("." + colour)).rich_style
                styles[name] = own + RichStyle(bgcolor=styled(ground).color) if ground else own
            return styles[name]

        return [
            Strip([Segment(in_cells(text), styled(name)) for text, name in merged(row)]).adjust_cell_length(width, base)
            for row in self.rows[:height]
        ]


def merged(row: TextRow) -> list[Run]:
    """Return the same picture in as few runs as possible, because each costs 40 bytes of output.

    Blanks take any style without a ground.
    """
    runs: list[Run] = []
    for text, style in row:
        if runs and (style == runs[-1][1] or not (text.strip(" ") or "/" in runs[-1][1])):
            runs[-1] = (runs[-1][0] + text, runs[-1][1])
        elif text:
            runs.append((text, style))
    return runs


def row_width(row: TextRow) -> int:
    """Return the width of a row in terminal cells."""
    return sum(cell_len(text) for text, _ in row)


def fitted(row: TextRow, width: int) -> list[Run]:
    """Return the row in at most `width` cells; the run that crosses the edge is shortened, the rest is dropped."""
    kept: list[Run] = []
    for text, style in row:
        left = width - row_width(kept)
        if left <= 0:
            break
        kept.append((shortened(text, left), style))
        if cell_len(text) > left:
            break
    return kept


def overlaid(row: TextRow, column: int, text: str, style: str) -> list[Run]:
    """The row with `text` in place of the cells from `column` on, as far as it reaches; each character is one cell."""
    result: list[Run] = []
    position, end = 0, column + len(text)
    for old, old_style in row:
        if position >= end or position + len(old) <= column:
            result.append((old, old_style))
            position += len(old)
            continue
        low, high = (min(max(edge - position, 0), len(old)) for edge in (column, end))
        result += [
            (old[:low], old_style),
            (text[position + low - column :][: high - low], style),
            (old[high:], old_style),
        ]
        position += len(old)
    return [run for run in result if run[0]]


def spread(left: TextRow, right: TextRow, *, width: int) -> list[Run]:
    """Return one row with its parts at both edges; the left part is shortened if there is no room for both."""
    room = width - row_width(right)
    if room <= 0:
        return fitted(right, width)
    start = fitted(left, room - 1)
    return [*start, (" " * (room - row_width(start)), ""), *right]


def joined(parts: Iterable[TextRow], *, width: int, gap: str = "   ") -> list[Run]:
    """Parts side by side, in order, as many as fit whole into `width`; the first is shortened if it must be."""
    row: list[Run] = []
    for part in parts:
        if not row:
            row = fitted(part, width)
        elif row_width(row) + len(gap) + row_width(part) <= width:
            row.extend(((gap, ""), *part))
        else:
            break
    return row


def placard(text: str, *, width: int, height: int, style: str = "muted") -> list[TextRow]:
    """Return a sentence in the middle of an otherwise empty area, wrapped between words."""
    lines: list[str] = [""]
    for word in text.split():
        candidate = f"{lines[-1]} {word}".strip()
        lines[-1:] = [candidate] if cell_len(candidate) <= width or not lines[-1] else [lines[-1], word]
    lines = [shortened(line, width) for line in lines[: max(height, 1)]]
    above = max(0, (height - len(lines)) // 2)
    rows: list[TextRow] = [[] for _ in range(above)]
    rows += [[(" " * ((width - cell_len(line)) // 2), ""), (line, style)] for line in lines]
    return rows + [[] for _ in range(height - len(rows))]
