"""The picture of a screen has the same text at the same cells, whatever the font."""

from __future__ import annotations

from servetop.tui.drawing.screen_picture import portable

PICTURE = """<svg xmlns="http://www.w3.org/2000/svg"><style>@font-face { src: url("https://cdn/f.woff") }
.terminal-12-r1 { font-family: Fira Code }</style>
<text class="terminal-12-r1" x="12.2" y="20" textLength="85.4" clip-path="url(#l)">ab&#160;&amp;c&#160;█</text>
<text class="terminal-12-title">servetop</text></svg>"""


def test_words_and_bars_are_placed_apart() -> None:
    found = portable(PICTURE)
    assert '<text class="dashboard-r1" y="20" x="12.2">ab</text>' in found
    assert '<text class="dashboard-r1" y="20" x="48.8">&amp;c</text>' in found
    assert '<text class="dashboard-r1" y="20" x="85.4">█</text>' in found
    assert '<text class="dashboard-title">servetop</text>' in found


def test_no_font_is_loaded() -> None:
    found = portable(PICTURE)
    assert "url(" not in found.replace("url(#l)", "")
    assert "DejaVu Sans Mono" in found
