"""What is written to the terminal, with fewer bytes for the same picture.

Textual sets all colours anew for every run of text and takes them back after it, about 45 bytes; here only what differs
from the run before is sent. Over ssh that is half of the output.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from textual.driver import Driver

_SEQUENCES = re.compile(r"(\x1b\[[0-9;]*m)")
_CURSOR_MOVES = re.compile(r"(?:\r|\n|\x1b\[[0-9;]*H)*")
"""What only moves the cursor: colours do not matter to it."""
_COLOUR_PARAMETERS = {"5": 1, "2": 3}
"""Numbers after 38 or 48: one of 256 colours, or red, green and blue."""
_INTENSITIES = {"1", "2"}
"""Bold and dim: 22 ends both, and leaves the colours."""


@dataclass(frozen=True, slots=True)
class CellStyle:
    """Colours and attributes in force, each as the parameters of the escape sequence (ECMA-48, SGR) that sets it."""

    foreground: str = ""
    background: str = ""
    attributes: tuple[str, ...] = ()
    """In their order, so that the same ones are equal."""

    def after(self, before: CellStyle) -> str:
        """The sequence that leads here from another look; empty when nothing differs."""
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
    """The look after a sequence; None for one with parameters that are not known here."""
    parameters = (sequence[2:-1] or "0").split(";")
    look = before
    while parameters:
        code = parameters.pop(0) or "0"
        if code in ("38", "48"):
            taken = _COLOUR_PARAMETERS.get(parameters[0], 0) + 1 if parameters else 0
            colour, parameters = ";".join([code, *parameters[:taken]]), parameters[taken:]
            look = _coloured(look, colour, ground=code == "48")
        elif code == "0":
            look = _PLAIN
        elif code in "123456789":
            look = CellStyle(look.foreground, look.background, tuple(sorted({*look.attributes, code})))
        elif re.fullmatch("(3|9)[0-7]|(4|10)[0-7]", code):
            look = _coloured(look, code, ground=code.startswith(("4", "10")))
        else:
            return None
    return look


def _coloured(look: CellStyle, colour: str, *, ground: bool) -> CellStyle:
    if ground:
        return CellStyle(look.foreground, colour, look.attributes)
    return CellStyle(colour, look.background, look.attributes)


def shorten_sgr(data: str) -> str:
    """The same picture in fewer bytes. Begins with the terminal's own colours, as Textual's frames do."""
    written: list[str] = []
    wanted = there = _PLAIN
    for piece in _SEQUENCES.split(data):
        if _SEQUENCES.match(piece):
            following = _set_by(piece, wanted)
            if following is None:
                return data
            wanted = following
        elif piece:
            if not _CURSOR_MOVES.fullmatch(piece):
                written.append(wanted.after(there))
                there = wanted
            written.append(piece)
    return "".join([*written, wanted.after(there)])


def sgr_shortening_driver(driver: type[Driver]) -> type[Driver]:
    """The same driver, which writes less."""

    class Economical(driver):  # type: ignore[valid-type, misc]
        """Everything goes through `shorten_sgr`."""

        def write(self, data: str) -> None:
            super().write(shorten_sgr(data))

    return Economical
