"""An engine's output is cleaned, bounded, and kept."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.core.clock import ManualClock
from servetop.core.events import LogLine
from servetop.engines.process.log_filter import (
    BURST_LINES,
    KEPT_LINES,
    LINES_PER_SECOND,
    MAX_LINE_CHARS,
    LogCapture,
    clean_line,
)


class Listener(list[LogLine]):
    """Keeps the lines it is given."""

    @property
    def texts(self) -> list[str]:
        return [line.text for line in self]


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"\x1b[32mINFO\x1b[0m ready", "INFO ready"),
        (b"\x1b]0;a title\x07shown", "shown"),
        (b"\x1b]8;;http://x\x1b\\link", "link"),
        (b"a\tb\x00\x08\x7f", "a       b"),
        ("caf\u00e9 \u202egnp.exe".encode(), "caf\u00e9 gnp.exe"),
        (b"broken \xff\xfe utf-8", "broken \ufffd\ufffd utf-8"),
        (b"x" * 5000, "x" * MAX_LINE_CHARS),
    ],
)
def test_a_line_is_cleaned_of_what_a_terminal_would_obey(raw: bytes, text: str) -> None:
    assert clean_line(raw) == text


@given(st.binary(max_size=200))
def test_no_control_character_survives(raw: bytes) -> None:
    assert not [letter for letter in clean_line(raw) if ord(letter) < 32 or 0x7F <= ord(letter) < 0xA0]


@given(st.lists(st.binary(max_size=30), max_size=12))
def test_lines_do_not_depend_on_how_the_output_was_cut(pieces: list[bytes]) -> None:
    cut, whole = Listener(), Listener()
    in_pieces, at_once = LogCapture(ManualClock(), cut.append), LogCapture(ManualClock(), whole.append)
    for piece in pieces:
        in_pieces.feed(piece)
    at_once.feed(b"".join(pieces))
    in_pieces.end()
    at_once.end()
    assert cut.texts == whole.texts
    assert in_pieces.tail() == at_once.tail()


def test_a_progress_bar_gives_a_line_for_each_state() -> None:
    lines = Listener()
    LogCapture(ManualClock(3.0), lines.append).feed(b"shards: 0%\rshards: 50%\rshards: 100%\r\n\nloaded\n")
    assert lines == [LogLine(at=3.0, text=text) for text in ("shards: 0%", "shards: 50%", "shards: 100%", "loaded")]


def test_a_flood_of_lines_is_rate_limited_with_a_report_and_the_last_lines_are_kept() -> None:
    clock, lines = ManualClock(), Listener()
    log = LogCapture(clock, lines.append)
    for second in range(10):  # 10 s of 10 MB/s
        clock.advance_to(float(second))
        log.feed(b"".join(b"step %d %05d %s\n" % (second, each, b"." * 85) for each in range(100_000)))
    log.end()
    assert len(lines) <= BURST_LINES + 10 * LINES_PER_SECOND + 10
    reported = [int(text.split()[1].replace(",", "")) for text in lines.texts if "dropped" in text]
    assert sum(reported) + len(lines) - len(reported) == 1_000_000
    assert len(log.tail()) == KEPT_LINES
    assert log.tail(1)[0].startswith("step 9 99999")


def test_a_line_without_end_is_cut_and_does_not_pile_up() -> None:
    lines = Listener()
    log = LogCapture(ManualClock(), lines.append)
    for _ in range(1000):
        log.feed(b"x" * 65536)
    log.feed(b"\nnext\n")
    assert lines.texts == ["x" * MAX_LINE_CHARS, "next"]


def test_secrets_and_noise_do_not_come_through() -> None:
    lines = Listener()
    log_filter = re.compile(rb"GET /metrics")
    log = LogCapture(ManualClock(), lines.append, secrets=["sk-123"], log_filter=log_filter)
    log.feed(b"args: {'api_key': ['sk-123']}\nGET /metrics 200 OK\nready\n")
    assert lines.texts == list(log.tail()) == ["args: {'api_key': ['***']}", "ready"]
