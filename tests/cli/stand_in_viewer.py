"""A viewer for the tests of the page's server, which echoes its input. With `deaf` it ignores signals to end."""

from __future__ import annotations

import json
import os
import sys


def show(text: str) -> None:
    """One packet of picture."""
    data = text.encode()
    os.write(1, b"D" + len(data).to_bytes(4, "big") + data)


def main(*words: str) -> None:
    """Runs until its input ends, or a signal ends it."""
    if "fails" in words:
        sys.exit("servetop: \x1b]0;owned\x07no such recording")
    os.write(1, b"__GANGLION__\n")
    show(f"pid {os.getpid()} {os.environ['COLUMNS']}x{os.environ['ROWS']}")
    while kind := sys.stdin.buffer.read(1):
        payload = sys.stdin.buffer.read(int.from_bytes(sys.stdin.buffer.read(4), "big"))
        show(f"{kind.decode()} {payload.decode()}")
        if kind == b"M" and json.loads(payload)["type"] == "quit" and "deaf" not in words:
            return


if __name__ == "__main__":
    main(*sys.argv[1:])
