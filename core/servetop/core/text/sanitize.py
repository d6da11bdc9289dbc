"""Makes text from outside safe for a terminal: error bodies, model ids, versions, file names, log lines, labels, notes.

Such text must never move the cursor, change colours, the title or the clipboard, reorder a line, or hide its
neighbours. Everything that servetop prints or draws goes through here; letters, marks and emoji of all languages stay.
"""

from __future__ import annotations

import re
import unicodedata

LONGEST_LINE = 5000
"""Characters of one line that are shown; a recording from elsewhere may hold millions."""

_ESCAPE_SEQUENCE = re.compile(
    r"(?:\x1b\]|\x9d)[^\x07\x1b\x9c\n]*+(?:\x07|\x1b\\|\x9c)"  # OSC: titles, links, clipboard
    r"|(?:\x1b[PX^_]|[\x90\x98\x9e\x9f])[^\x1b\x9c\n]*+(?:\x1b\\|\x9c)"  # DCS, SOS, PM, APC strings
    r"|(?:\x1b\[|\x9b)[0-?]*+[ -/]*+[@-~]"  # CSI: cursor, colours, modes
    r"|\x1b[ -/]*+[0-~]"  # two characters and charsets; of a string without an end its beginning alone
)
_LINE_BREAK = re.compile("\r\n|[\n\x0b\x0c\x85\u2028\u2029]")
_LINE_BREAKS = re.compile(f"(?:{_LINE_BREAK.pattern})++")
_KEPT_FORMATS = frozenset(
    "\u200c\u200d"  # joiners: Persian, Indic scripts, emoji of several parts
    "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"  # signs around numbers
)
_CI_COMMAND = re.compile(r"^[^\S\n]*:(?=:)|#(?=#[a-z]*\[)", re.MULTILINE | re.IGNORECASE)
"""The first character of a command of GitHub Actions, Azure Pipelines (`##vso[`) or TeamCity (`##teamcity[`)."""
_BLACK_FLAG = "\U0001f3f4"
_UNKNOWN = "\N{REPLACEMENT CHARACTER}"
_REPLACED = {"Cs": _UNKNOWN, "Co": _UNKNOWN, "Cn": _UNKNOWN}
"""Undecodable bytes of a file name, private and unassigned characters: terminals differ in what they draw."""


def sanitize_line(text: str) -> str:
    """One line without escape sequences, controls or bidirectional overrides; line breaks and tabs become spaces."""
    shown = text if len(text) <= LONGEST_LINE else text[:LONGEST_LINE] + "…"
    if shown.isprintable():
        return shown
    return _printable(_LINE_BREAKS.sub(" ", shown.rstrip("\r\n")))


def sanitize_text(text: str) -> str:
    """Several lines, sanitized like one; every line break becomes a newline."""
    if text.isprintable():
        return text
    return "\n".join(_printable(line) for line in _LINE_BREAK.sub("\n", text).split("\n"))


def sanitize_log_line(text: str) -> str:
    """Return a line of a program's output; if carriage returns overwrote it (progress bars), its last state."""
    return sanitize_line(text[: 2 * LONGEST_LINE].rstrip("\r\n").rsplit("\r", 1)[-1])


def break_ci_commands(text: str) -> str:
    """Insert a blank into commands to CI runners in a program's output: `::error::` at a line's start, `##[group]`."""
    return _CI_COMMAND.sub(lambda found: f"{found[0]} ", text)


def _printable(line: str) -> str:
    if line.isprintable():
        return line
    kept: list[str] = []
    for each in _ESCAPE_SEQUENCE.sub("", line).replace("\t", "    ").replace("\r", " "):
        kind = unicodedata.category(each)
        if kind == "Cf" and not (each in _KEPT_FORMATS or _continues_flag(kept, each)):
            continue
        if kind != "Cc":
            kept.append(_REPLACED.get(kind, each))
    return "".join(kept)


def _continues_flag(kept: list[str], each: str) -> bool:
    """Whether a tag character belongs to the flag of England, Scotland or Wales; elsewhere it is hidden text."""
    return _is_tag(each) and bool(kept) and (kept[-1] == _BLACK_FLAG or _is_tag(kept[-1]))


def _is_tag(each: str) -> bool:
    return "\U000e0020" <= each <= "\U000e007f"
