"""Shortened terminal output shows the same picture in fewer bytes."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import ModuleType

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from textual._compositor import CompositorUpdate
from textual.drivers.headless_driver import HeadlessDriver

from servetop.tui.app import DashboardApp
from servetop.tui.terminal_output import sgr_shortening_driver, shorten_sgr

Dashboard = Callable[..., DashboardApp]
STYLES = ("0", "1", "2", "4", "7", "31", "97", "42", "104", "38;5;9", "48;5;200", "38;2;86;180;233", "48;2;1;2;3")


def shown(data: str) -> list[tuple[str, str, str, frozenset[str]]]:
    """Each character or move with the foreground, background and attributes in force; moves have none."""
    cells, foreground, background, attributes = [], "", "", frozenset[str]()
    for sequence, other in re.findall(r"\x1b\[([0-9;]*)m|(\x1b\[[0-9;]*[A-Za-z]|.)", data, re.DOTALL):
        if other:
            look = ("", "", frozenset[str]()) if other in "\r\n" or "H" in other[1:] else (
                foreground, background, attributes
            )  # fmt: skip
            cells.append((other, *look))
            continue
        for code in re.findall(r"[34]8;2;\d+;\d+;\d+|[34]8;5;\d+|\d+", sequence or "0"):
            if code == "0":
                foreground, background, attributes = "", "", frozenset[str]()
            elif code == "22":
                attributes -= {"1", "2"}
            elif len(code) == 1:
                attributes |= {code}
            elif code.startswith(("3", "9")):
                foreground = code
            else:
                background = code
    return [*cells, ("end", foreground, background, attributes)]


sequences = st.lists(st.sampled_from(STYLES), max_size=3).map(lambda each: f"\x1b[{';'.join(each)}m")
texts = st.sampled_from(["a", " ", "⣿⣿", "\r\n", "\x1b[3;81H", "\x1b[2J", "Load "])


@example("\x1b[2;1ma\x1b[2m")
@given(st.lists(sequences | texts, max_size=30).map("".join))
@settings(max_examples=500)
def test_every_character_keeps_its_colours_and_its_place(data: str) -> None:
    assert shown(shorten_sgr(data)) == shown(data)


@pytest.mark.parametrize(
    ("data", "written"),
    [
        ("\x1b[1;31;40ma\x1b[0m\x1b[1;32;40mb\x1b[0m", "\x1b[1;31;40ma\x1b[32mb\x1b[0m"),
        ("\x1b[31ma\x1b[0m\r\n\x1b[5;1H\x1b[31mb\x1b[0m", "\x1b[31ma\r\n\x1b[5;1Hb\x1b[0m"),
        ("\x1b[1;31ma\x1b[0m\x1b[31mb\x1b[0m", "\x1b[1;31ma\x1b[22mb\x1b[0m"),
        ("\x1b[31ma\x1b[0m\x1b]8;;x\x1b\\b", "\x1b[31ma\x1b[0m\x1b]8;;x\x1b\\b"),
        ("\x1b[31ma\x1b[22mb", "\x1b[31ma\x1b[22mb"),
    ],
    ids=["same ground", "same colour elsewhere", "attribute taken back", "a link", "not known here"],
)
def test_only_differences_are_sent(data: str, written: str) -> None:
    assert shorten_sgr(data) == written


async def test_a_frame_is_a_third_smaller(
    canned: ModuleType, dashboard: Dashboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.setenv("TERM", "xterm-256color")
    app = dashboard(canned.growing())
    async with app.run_test(size=(160, 48)) as pilot:
        await pilot.pause()
        update = app.screen._compositor.render_update(full=True)
        assert isinstance(update, CompositorUpdate)
        frame = update.render_segments(app.console)
        assert len(shorten_sgr(frame)) < 0.67 * len(frame)
        assert shown(shorten_sgr(frame)) == shown(frame)


async def test_the_dashboards_driver_writes_the_shortened_output(canned: ModuleType, dashboard: Dashboard) -> None:
    written: list[str] = []

    class Terminal(HeadlessDriver):
        def write(self, data: str) -> None:
            written.append(data)

    app = dashboard(canned.growing())
    sgr_shortening_driver(Terminal)(app).write("\x1b[31ma\x1b[0m\x1b[31mb\x1b[0m")
    assert written == ["\x1b[31mab\x1b[0m"]
    assert app.driver_class.__name__ == "SgrShorteningDriver"
