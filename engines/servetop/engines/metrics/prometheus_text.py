"""Parses selected series of a Prometheus text page.

`prometheus_client.parser` parses every family of a page: 9 ms for vLLM's 60 kB, at four pages a second. This scanner
parses only the requested lines (0.1 ms); a property test compares its results with that parser's. It reads each line a
bounded number of times, whatever a server sends, without regular expressions or backtracking. The labels of a row are
the same on every page of a server, and mostly on those of its replicas, so they are parsed once.
"""

from __future__ import annotations

import functools
from collections.abc import Container, Mapping
from dataclasses import dataclass

MAX_LINE_CHARS = 4096
"""Maximum characters of a line; longer ones are skipped (vLLM's longest has 1,047)."""
_MOST_KEPT, _LONGEST_KEPT = 32_768, 512
"""Most rows, and characters of one, whose parsed labels are kept: 50 pages of vLLM have 32,800 rows."""
_MOST_LONG_KEPT = 256
"""The same of longer rows: a page of vLLM has one, with its configuration."""
_BLANKS = " \t"
_ESCAPED = {"n": "\n"}


@dataclass(frozen=True, slots=True)
class PrometheusSample:
    """One sample of a series: its labels as written on the page, and its value (which may be NaN or infinite)."""

    labels_text: str
    value: float

    @property
    def labels(self) -> Mapping[str, str]:
        """Unescaped labels, up to the first malformed one."""
        short = len(self.labels_text) <= _LONGEST_KEPT
        return _known_labels(self.labels_text) if short else _known_long_labels(self.labels_text)


def scan(page: str, wanted: Container[str]) -> dict[str, list[PrometheusSample]]:
    """Return the rows of the requested series by name, in page order; malformed lines are skipped.

    Names are those of samples: a counter's with `_total`, a histogram's with `_bucket`, `_sum`, `_count`.
    """
    found: dict[str, list[PrometheusSample]] = {}
    for line in page_lines(page):
        name = line.partition("{")[0].partition(" ")[0]
        if name in wanted and (row := parse_row(line, name)) is not None:
            found.setdefault(name, []).append(row)
    return found


def page_lines(page: str) -> list[str]:
    """Return the lines of a page, without blanks before a name and without tabs outside the labels."""
    lines = page.split("\n")
    return lines if has_plain_blanks(page) else [_with_plain_blanks(line) for line in lines]


def has_plain_blanks(page: str) -> bool:
    """Whether no line begins with a blank, and none has a tab."""
    return not ("\t" in page or "\n " in page or page.startswith(" "))


def is_text(page: bytes) -> bool:
    """Whether a page may be Prometheus text: HTML and JSON are not."""
    return not page.lstrip().startswith((b"<", b"{", b"["))


def parse_line(line: str) -> tuple[str, PrometheusSample] | None:
    """Return the name of a row and its sample; None for a comment and for a malformed or too long line."""
    line = _with_plain_blanks(line)
    name = line.partition("{")[0].partition(" ")[0]
    row = parse_row(line, name) if name else None
    return None if row is None else (name, row)


def _with_plain_blanks(line: str) -> str:
    """Remove the blanks before the name of a row, and replace the tabs after it, outside the labels."""
    head, brace, rest = line.partition("{")
    return head.replace("\t", " ").lstrip(" ") + brace + rest


def _labels(text: str) -> Mapping[str, str]:
    found, at = dict[str, str](), 0
    while (equals := text.find("=", at)) >= 0:
        opened = text.find('"', equals)
        closed = _closing_quote(text, opened + 1)
        if opened < 0 or closed < 0 or text[equals + 1 : opened].strip(_BLANKS):
            break
        found[text[at:equals].strip(" \t,")] = _unescape(text[opened + 1 : closed])
        at = closed + 1
    return found


_known_labels = functools.lru_cache(_MOST_KEPT)(_labels)
_known_long_labels = functools.lru_cache(_MOST_LONG_KEPT)(_labels)


def parse_row(line: str, name: str) -> PrometheusSample | None:
    """Return the sample of a row that begins with its name; None for a malformed or too long one."""
    if len(line) > MAX_LINE_CHARS:
        return None
    start = len(name)
    at, labels = len(line) - len(line[start:].lstrip(_BLANKS)), ""
    if line.startswith("{", at):
        last = line.rfind("}")
        known = last - at <= _LONGEST_KEPT and _ends_labels(line[at + 1 : last + 1])
        closed = last if known else _closing_brace(line, at + 1)
        if closed < 0:
            return None
        labels, at = line[at + 1 : closed], closed + 1
    fields = line[at:].split(maxsplit=1)
    try:
        return PrometheusSample(labels, float(fields[0])) if fields and "_" not in fields[0] else None
    except ValueError:
        return None


@functools.lru_cache(_MOST_KEPT)
def _ends_labels(text: str) -> bool:
    """Whether the last character of a text, which begins with labels, is the brace that closes them."""
    return _closing_brace(text, 0) == len(text) - 1 >= 0


def _closing_brace(line: str, start: int) -> int:
    """Return where the labels that begin at `start` end, or -1; a brace between quotes is text."""
    at = start
    brace = line.find("}", at)
    while brace >= 0:
        opened = line.find('"', at, brace)
        if opened < 0:
            return brace
        closed = _closing_quote(line, opened + 1)
        if closed < 0:
            return -1
        at = closed + 1
        if brace < at:
            brace = line.find("}", at)
    return -1


def _closing_quote(text: str, start: int) -> int:
    """Return the position of the first unescaped quote from `start`, or -1."""
    at = text.find('"', start)
    while at >= 0:
        before = text[start:at]
        if (len(before) - len(before.rstrip("\\"))) % 2 == 0:
            return at
        start, at = at, text.find('"', at + 1)
    return -1


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    first, *rest = text.split("\\\\")
    return "\\".join(_unescape_piece(piece) for piece in (first, *rest))


def _unescape_piece(text: str) -> str:
    """Unescape text without escaped backslashes: `\\n` is a newline; before other letters the backslash is dropped."""
    first, *rest = text.split("\\")
    return first + "".join(_ESCAPED.get(piece[:1], piece[:1]) + piece[1:] for piece in rest)
