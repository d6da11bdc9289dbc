"""A loopback port for one test: no other process is given it, and the server of the test can listen on it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from tests.integration.real_engines import port_of, reserve


@contextlib.contextmanager
def reserved_port() -> Iterator[int]:
    """Reserve a port and yield its number; it stays reserved when a server that listened there has ended."""
    with reserve() as bound:
        yield port_of(bound)
