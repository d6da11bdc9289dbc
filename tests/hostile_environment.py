"""Runs pytest where every variable that may change a result has an odd value: `python -m tests.hostile_environment …`.

The names come from the product's own source (tests/house/variable_names.py) and from ODD, for those that libraries,
Python, git and bash read.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping

from tests.clean_environment import is_kept
from tests.house.variable_names import variable_names

PROXY = "http://127.0.0.1:9"
"""An address where nothing listens."""
PROXIED = ("http", "https", "all", "ws", "wss")
NOWHERE = "/nonexistent/servetop"
ODD: Mapping[str, str] = {
    "COLUMNS": "20", "LINES": "5", "ROWS": "5", "TERMINAL_WIDTH": "20", "TERM": "dumb", "COLORTERM": "truecolor",
    "NO_COLOR": "1", "FORCE_COLOR": "1", "CLICOLOR_FORCE": "1", "PY_COLORS": "1", "TTY_COMPATIBLE": "1",
    "TTY_INTERACTIVE": "1", "GITHUB_ACTIONS": "true", "TEXTUAL_ANIMATIONS": "none", "TEXTUAL_FPS": "1",
    "TZ": "Pacific/Chatham", "LANG": "tr_TR.UTF-8", "LANGUAGE": "tr", "LC_NUMERIC": "de_DE.UTF-8", "LC_TIME": "ja_JP",
    **dict.fromkeys((name for each in PROXIED for name in (f"{each}_proxy", f"{each}_PROXY".upper())), PROXY),
    "no_proxy": "example.invalid", "NO_PROXY": "example.invalid",
    "SSL_CERT_FILE": NOWHERE, "SSL_CERT_DIR": NOWHERE, "REQUESTS_CA_BUNDLE": NOWHERE, "CURL_CA_BUNDLE": NOWHERE,
    **{f"XDG_{each}_HOME": NOWHERE for each in ("CONFIG", "DATA", "STATE", "CACHE")}, "XDG_CONFIG_DIRS": NOWHERE,
    "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii", "PYTHONUNBUFFERED": "1", "PYTHONHASHSEED": "7",
    "PYTHONWARNINGS": "default", "PYTHONNOUSERSITE": "1",
    "PIP_INDEX_URL": PROXY, "PIP_REQUIRE_VIRTUALENV": "1", "MAKEFLAGS": "-n", "MALLOC_ARENA_MAX": "1",
    "GIT_DIR": NOWHERE, "GIT_WORK_TREE": NOWHERE, "BASH_ENV": NOWHERE, "CDPATH": NOWHERE, "POSIXLY_CORRECT": "1",
    "LD_PRELOAD": "libm.so.6",
}  # fmt: skip


def hostile_variables() -> dict[str, str]:
    """Return an odd value for every variable of the product, for one of every prefix, and for those of ODD."""
    names = (f"{name}ODD" if name.endswith("_") else name for name in variable_names())
    return {name: "odd" for name in names if not is_kept(name)} | dict(ODD)


def main() -> None:
    """Replace this process by pytest with the arguments of the command line."""
    empty = tempfile.mkdtemp(prefix="servetop-empty-")
    environment = {**os.environ, **hostile_variables(), "PYTHONPATH": empty}
    os.execve(sys.executable, [sys.executable, "-m", "pytest", *sys.argv[1:]], environment)


if __name__ == "__main__":
    main()
