"""A picture as PNG has its size and its text; without a font nothing is drawn."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import pytest

from servetop.core.errors import UsageError
from servetop.reports.page import png_picture
from servetop.reports.page.png_picture import png_available, png_of

resvg_py = pytest.importorskip("resvg_py")
PICTURE = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="{}" height="50" font-family="system-ui, No Such Font">'
    '<text x="5" y="30">{}</text></svg>'
)


@pytest.fixture(autouse=True)
def forget_the_fonts() -> Iterator[None]:
    png_picture._draws_text.cache_clear()
    yield
    png_picture._draws_text.cache_clear()


def size(png: bytes) -> tuple[int, int]:
    """Return width and height in pixels, from the header of the file."""
    assert png[12:16] == b"IHDR"
    return int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big")


def test_the_picture_has_its_size_and_its_text() -> None:
    if not png_available():
        pytest.skip("this machine has no font")
    assert size(png_of(PICTURE.format(120, "TTFT"))) == (120, 50)
    assert size(png_of(PICTURE.format(120, "TTFT"), zoom=2)) == (240, 100)
    texts = {png_of(PICTURE.format(120, text)) for text in ("TTFT", "TPOT", "")}
    assert len(texts) == 3


def test_without_a_font_no_picture_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    without_fonts: Any = functools.partial(resvg_py.svg_to_bytes, skip_system_fonts=True)
    monkeypatch.setattr(resvg_py, "svg_to_bytes", without_fonts)
    assert not png_available()
    with pytest.raises(UsageError, match="PNG needs a font, and none is installed: install one"):
        png_of(PICTURE.format(120, "TTFT"))
