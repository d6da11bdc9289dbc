"""Ports of this machine."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from servetop.core.errors import EngineError
from servetop.engines.process import ports
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


def test_a_free_port_is_none_that_the_system_gives_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "EPHEMERAL", tmp_path / "range")
    (tmp_path / "range").write_text("32768\t60999\n", encoding="ascii")
    assert all(10_000 <= free_port() < 32_768 for _ in range(20))


@pytest.mark.parametrize("text", [None, "", "1024\t65535\n"])
def test_where_there_are_no_others_it_is_one_of_these(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None
) -> None:
    monkeypatch.setattr(ports, "EPHEMERAL", tmp_path / "range")
    if text is not None:
        (tmp_path / "range").write_text(text, encoding="ascii")
    assert 1024 <= free_port() <= 65535


def test_no_free_port_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind((LOOPBACK, 0))
        monkeypatch.setattr(ports, "_drawn_port", lambda: taken.getsockname()[1])
        with pytest.raises(EngineError, match="no port is free: give one with --port"):
            free_port()


def test_a_port_whose_process_is_invisible_belongs_to_another_user() -> None:
    with socket.socket() as bound:
        bound.bind((LOOPBACK, 0))  # without listen, so that no process is listed
        assert port_holder(bound.getsockname()[1]) == "another user's process, or one in another container"
