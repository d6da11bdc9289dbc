"""The processes of an engine, also those that leave its process group."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from servetop.engines.process.process_tree import ProcessTree
from tests.harness import wait_for

SLEEP = "import time; time.sleep(300)"
PARENT = f"""
import subprocess, sys, time
subprocess.Popen([sys.executable, "-c", {SLEEP!r}])
subprocess.Popen([sys.executable, "-c", {SLEEP!r}], start_new_session=True)
time.sleep(300)
"""


def all_known(tree: ProcessTree) -> bool:
    """A child that is about to leave the group counts as living before `refresh` has seen it: hence the second one."""
    complete = len(tree.living()) == 3
    tree.refresh()
    return complete


@pytest.fixture
def tree() -> Iterator[ProcessTree]:
    """A leader with two children, one of which has left the group."""
    with subprocess.Popen([sys.executable, "-c", PARENT], start_new_session=True) as leader:
        tree = ProcessTree(leader.pid)
        wait_for(lambda: all_known(tree), seconds=10, what="the start of the children")
        yield tree
        tree.signal_all(signal.SIGKILL)


def test_a_descendant_that_left_the_group_is_signalled_too(tree: ProcessTree) -> None:
    tree.signal_all(signal.SIGKILL)
    wait_for(lambda: not tree.living(), seconds=10, what="the end of all processes")


def test_the_others_live_on_when_only_the_leader_is_signalled(tree: ProcessTree) -> None:
    tree.signal_leader(signal.SIGKILL)
    wait_for(lambda: len(tree.living()) == 2, seconds=10, what="the end of the leader")
    tree.refresh()
    assert len(tree.living()) == 2, "known descendants are kept after the leader has gone"


def test_the_tree_of_a_process_that_has_gone_is_empty() -> None:
    with subprocess.Popen([sys.executable, "-c", "pass"], start_new_session=True) as leader:
        leader.wait()
    tree = ProcessTree(leader.pid)
    tree.refresh()
    assert tree.living() == []
    tree.signal_all(signal.SIGTERM)
    tree.signal_leader(signal.SIGTERM)
