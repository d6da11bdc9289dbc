"""Answers of real servers, as bodies without their HTTP headers."""

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def captured() -> Callable[[str], bytes]:
    """The body of a captured answer, by file name without `.txt`."""

    def body(name: str) -> bytes:
        raw = (Path(__file__).parent / "data" / f"{name}.txt").read_bytes()
        if not raw.startswith(b"HTTP/"):
            return raw
        return raw.replace(b"\r\n", b"\n").partition(b"\n\n")[2]

    return body
