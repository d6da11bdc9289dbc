"""A viewer behind a page ends with the server of its page."""

from __future__ import annotations

import os

import pytest

from servetop.cli.viewing.dashboard import _exit_condition
from servetop.cli.viewing.viewer_signals import PAGE_SERVER, ViewerSignals


@pytest.mark.parametrize(("is_parent", "answer"), [(True, ""), (False, "abandoned")])
def test_a_server_that_is_not_the_parent_is_gone_even_if_it_went_before_the_viewer_looked(
    is_parent: bool, answer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PAGE_SERVER, str(os.getppid() if is_parent else os.getpid()))
    assert _exit_condition(ViewerSignals())() == answer
