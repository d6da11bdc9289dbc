"""A viewer behind a page ends with the server of its page."""

from __future__ import annotations

import os

import pytest

from servetop.cli.viewing.dashboard import _exit_condition
from servetop.cli.viewing.viewer_signals import PAGE_SERVER, ViewerSignals


@pytest.mark.parametrize(("is_parent", "answer"), [(True, ""), (False, "abandoned")])
def test_a_viewer_detects_that_its_server_ended_before_it_started(
    is_parent: bool, answer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PAGE_SERVER, str(os.getppid() if is_parent else os.getpid()))
    assert _exit_condition(ViewerSignals())() == answer
