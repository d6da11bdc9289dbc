"""The real-time class: a thread that enters it keeps it to itself, and leaves it."""

import os
import subprocess
import sys

import pytest

from servetop.core.system.scheduling import may_enter_real_time


@pytest.mark.skipif(sys.platform != "linux", reason="the class is Linux's")
def test_processes_and_threads_do_not_inherit_the_class() -> None:
    program = (
        "import os, subprocess, sys, threading\n"
        "from servetop.core.system.scheduling import enter_real_time, leave_real_time\n"
        "entered = enter_real_time()\n"
        "print(entered, os.sched_getscheduler(0) != os.SCHED_OTHER)\n"
        "child = [sys.executable, '-c', 'import os; print(os.sched_getscheduler(0) == os.SCHED_OTHER)']\n"
        "print(subprocess.run(child, capture_output=True, text=True, check=True).stdout.strip())\n"
        "thread = threading.Thread(target=lambda: print(os.sched_getscheduler(0) == os.SCHED_OTHER))\n"
        "thread.start(); thread.join(); leave_real_time()\n"
        "print(os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK == os.SCHED_OTHER)\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    entered, *others = ran.stdout.splitlines()
    assert entered == f"{may_enter_real_time()} {may_enter_real_time()}"
    assert others == ["True"] * 3


@pytest.mark.skipif(sys.platform != "linux", reason="the class is Linux's")
def test_asking_for_the_right_changes_nothing() -> None:
    before = os.sched_getscheduler(0)
    assert may_enter_real_time() in (True, False)
    assert os.sched_getscheduler(0) == before
