"""What a run loads before its sender has been started: as little as can be, since the sender loads beside it."""

from __future__ import annotations

import subprocess
import sys


def test_the_sender_is_started_before_anything_heavy_is_loaded() -> None:
    script = (
        "import sys, servetop.cli.main, servetop.cli.headless, servetop.cli.run_process, servetop.cli.first_sender;"
        "print(sorted({'numpy', 'httpx', 'msgspec', 'rich', 'sqlite3', 'textual'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
