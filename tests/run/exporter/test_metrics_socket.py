"""The port of the metrics is taken before the run starts, or the reason is said in one line."""

from __future__ import annotations

import socket

import pytest

from servetop.core.errors import UsageError
from servetop.run.exporter.metrics_socket import listening_socket, metrics_url


def test_a_free_port_is_taken_and_named() -> None:
    with listening_socket("127.0.0.1", 0) as listening:
        port = listening.getsockname()[1]
        assert port > 0
        assert metrics_url(listening) == f"http://127.0.0.1:{port}/metrics"
        with socket.create_connection(("127.0.0.1", port)):
            pass


def test_a_busy_port_is_one_line_with_the_option() -> None:
    with listening_socket("127.0.0.1", 0) as listening:
        port = listening.getsockname()[1]
        with pytest.raises(
            UsageError, match=rf"^cannot serve metrics at 127\.0\.0\.1:{port} \(address already in use\)"
        ):
            listening_socket("127.0.0.1", port)


@pytest.mark.parametrize("host", ["192.0.2.1", ""])
def test_an_address_of_another_machine_is_refused(host: str) -> None:
    with pytest.raises(UsageError, match="cannot serve metrics at"):
        listening_socket(host, 0)


def test_all_addresses_are_named_after_the_machine() -> None:
    with listening_socket("0.0.0.0", 0) as listening:
        assert metrics_url(listening) == f"http://{socket.gethostname()}:{listening.getsockname()[1]}/metrics"
