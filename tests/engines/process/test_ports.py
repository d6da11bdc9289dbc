"""Ports of this machine."""

from __future__ import annotations

import os
import socket

from servetop.engines.process.ports import LOOPBACK, free_port, port_holder, port_is_free


def test_a_port_with_a_listener_is_not_free_and_its_process_is_named() -> None:
    with socket.create_server((LOOPBACK, 0)) as server:
        port = server.getsockname()[1]
        assert not port_is_free(port)
        assert port_holder(port).startswith(f"process {os.getpid()} (")


def test_a_port_that_is_bound_without_listening_is_not_free() -> None:
    with socket.socket() as bound:
        bound.bind((LOOPBACK, 0))
        assert not port_is_free(bound.getsockname()[1])


def test_a_free_port_is_a_usable_number() -> None:
    assert 1024 <= free_port() <= 65535


def test_a_port_whose_process_is_invisible_belongs_to_another_user() -> None:
    with socket.socket() as bound:
        bound.bind((LOOPBACK, 0))  # without listen, so that no process is listed
        assert port_holder(bound.getsockname()[1]) == "another user's process, or one in another container"
