"""Shortens the output to the terminal without changing the picture.

Textual sets all colours of every run of text and resets them after it, about 45 bytes; here only the differences to the
previous run are sent. That halves the output, which matters over ssh.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from textual.driver import Driver

_SEQUENCES = re.compile(r"(\x1b\[[0-9;]*m)")
_CURSOR_MOVES = re.compile(r"(?:\r|\n|\x1b\[[0-9;]*H)*")
"""Sequences that only move the cursor, whatever the colours."""
_COLOUR_PARAMETERS = {"5": 1, "2": 3}
"""Numbers after 38 or 48: one of 256 colours, or red, green and blue."""
_INTENSITIES = {"1", "2"}
"""Bold and dim: 22 ends both and keeps the colours."""


@dataclass(frozen=True, slots=True)
class CellStyle:
    """Colours and attributes in force, each as the parameters of the SGR sequence (ECMA-48) that sets it."""

    foreground: str = ""
    background: str = ""
    attributes: tuple[str, ...] = ()
    """Sorted, so that equal sets compare equal."""

    def after(self, before: CellStyle) -> str:
        """Return the sequence that changes another style into this one; empty if they are equal."""
        if self == before:
            return ""
        ended = set(before.attributes) - set(self.attributes)
        uncoloured = (before.foreground and not self.foreground) or (before.background and not self.background)
        start, parts = before, list[str]()
        if uncoloured or ended - _INTENSITIES:
            start, parts = _PLAIN, ["0"]
        elif ended:
            kept = tuple(each for each in before.attributes if each not in _INTENSITIES)
            start, parts = CellStyle(before.foreground, before.background, kept), ["22"]
        parts += [each for each in self.attributes if each not in start.attributes]
        parts += [self.foreground] if self.foreground != start.foreground else []
        parts += [self.background] if self.background != start.background else []
        return f"\x1b[{';'.join(parts)}m"


_PLAIN = CellStyle()


@lru_cache(maxsize=4096)
def _set_by(sequence: str, before: CellStyle) -> CellStyle | None:
    """Return the style after a sequence; None if it has unknown parameters."""
    parameters = (sequence[2:-1] or "0").split(";")
    style = before
    while parameters:
        code = parameters.pop(0) or "0"
        if code in ("38", "48"):
            taken = _COLOUR_PARAMETERS.get(parameters[0], 0) + 1 if parameters else 0
            colour, parameters = ";".join([code, *parameters[:taken]]), parameters[taken:]
            style = _coloured(style, colour, ground=code == "48")
        elif code == "0":
            style = _PLAIN
        elif code in "123456789":
            style = CellStyle(style.foreground, style.background, tuple(sorted({*style.attributes, code})))
        elif re.fullmatch("(3|9)[0-7]|(4|10)[0-7]", code):
            style = _coloured(style, code, ground=code.startswith(("4", "10")))
        else:
            return None
    return style


def _coloured(style: CellStyle, colour: str, *, ground: bool) -> CellStyle:
    if ground:
        return CellStyle(style.foreground, colour, style.attributes)
    return CellStyle(colour, style.background, style.attributes)


def shorten_sgr(data: str) -> str:
    """Return the same picture in fewer bytes; starts from the terminal's default colours, as Textual's frames do."""
    written: list[str] = []
    wanted = there = _PLAIN
    for part in _SEQUENCES.split(data):
        if _SEQUENCES.match(part):
            following = _set_by(part, wanted)
            if following is None:
                return data
            wanted = following
        elif part:
            if not _CURSOR_MOVES.fullmatch(part):
                written.append(wanted.after(there))
                there = wanted
            written.append(part)
    return "".join([*written, wanted.after(there)])


def sgr_shortening_driver(driver: type[Driver]) -> type[Driver]:
    """Return a subclass of the driver that writes less."""

    class SgrShorteningDriver(driver):  # type: ignore[valid-type, misc]
        """Passes everything it writes through `shorten_sgr`."""

        def write(self, data: str) -> None:
            super().write(shorten_sgr(data))

    return SgrShorteningDriver
