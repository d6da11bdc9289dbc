"""Text that acts on a terminal when printed: title, clipboard, colours, C1, writing direction."""

from __future__ import annotations

import json
from dataclasses import dataclass

OUTLAWS = "\x1b\x07\x08\x9b\x9d\x85\u202e\u2066\u2028"
"""What no output of servetop's to a pipe may hold."""


@dataclass(frozen=True)
class HostileText:
    """One text in the encodings that it may come in."""

    text: str

    def raw(self) -> bytes:
        """UTF-8, as it is."""
        return self.text.encode()

    def json(self) -> bytes:
        """As the inside of a JSON string."""
        return json.dumps(self.text)[1:-1].encode()

    def line(self) -> str:
        """Without line ends, for headers."""
        return self.text.replace("\n", "").replace("\r", "").replace("\x85", "").replace("\u2028", "")


HOSTILE = HostileText(
    "\x1b]0;owned\x07\x1b]52;c;b3duZWQ=\x07\x1b[2J\x1b[31mred\x9b31m\x9d0;x\x07\rover\nnext\x08\u202egnp\u2066\u2028[bold]x[/bold]"
)
