"""An SVG picture as PNG, drawn by resvg (an extra) with the fonts of the machine."""

from __future__ import annotations

import functools
import importlib
from typing import Any

from servetop.core.errors import UsageError

_FONT, _MONOSPACE = "DejaVu Sans", "DejaVu Sans Mono"
"""Used where the families of a picture are not installed; any other font takes their place."""
_SAMPLE = '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="20"><text y="15">{}</text></svg>'


def png_available() -> bool:
    """Whether a PNG can be drawn here: resvg and at least one font are installed."""
    try:
        require_png()
    except UsageError:
        return False
    return True


def require_png() -> None:
    """Raise UsageError without resvg, or without any font, with which a picture would have no text."""
    try:
        importlib.import_module("resvg_py")
    except ImportError as error:
        raise UsageError(
            "PNG needs resvg: install servetop with its extra, as in pip install 'servetop[png]', or give --format svg"
        ) from error
    if not _draws_text():
        raise UsageError(
            "PNG needs a font, and none is installed: install one, such as the package fonts-dejavu, or give "
            "--format svg"
        )


def png_of(svg: str, *, zoom: int = 1) -> bytes:
    """Return a picture as PNG, `zoom` pixels for each unit of its width; UsageError as `require_png`."""
    require_png()
    return _drawn(svg, zoom=zoom)


@functools.cache
def _draws_text() -> bool:
    return _drawn(_SAMPLE.format("Ab")) != _drawn(_SAMPLE.format(""))


def _drawn(svg: str, *, zoom: int = 1) -> bytes:
    import resvg_py

    fonts: dict[str, Any] = {"font_family": _FONT, "sans_serif_family": _FONT, "monospace_family": _MONOSPACE}
    return bytes(resvg_py.svg_to_bytes(svg_string=svg, zoom=zoom, **fonts))
