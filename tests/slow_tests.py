"""Options of pytest: `--quick` leaves out tests that take long, `--slow` runs these, `--write-slow-tests` lists them.

tests/slow_tests.txt has the test functions that took at least LONG seconds, with all their parameters and fixtures. A
fixture that several tests need is counted with the first of them: with `--quick`, what takes so long then is added.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

LIST = Path(__file__).with_name("slow_tests.txt")
LONG = 0.5


def slow_tests() -> frozenset[str]:
    """Return the listed functions, each as `tests/…/test_x.py::test_y`."""
    return frozenset(LIST.read_text(encoding="utf-8").split())


def function_of(node_id: str) -> str:
    """Return the function of a test, without its parameters."""
    return node_id.partition("[")[0]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the three options."""
    group = parser.getgroup("servetop")
    group.addoption("--quick", action="store_true", help="leave out the tests of tests/slow_tests.txt")
    group.addoption("--slow", action="store_true", help="run only the tests of tests/slow_tests.txt")
    group.addoption("--write-slow-tests", action="store_true", help="measure all tests, and write tests/slow_tests.txt")


def pytest_configure(config: pytest.Config) -> None:
    """Measure the tests, in the process that has all their reports."""
    if config.getoption("--write-slow-tests") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Durations(slow_tests() if config.getoption("--quick") else frozenset()))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests that the options select."""
    quick, slow = config.getoption("--quick"), config.getoption("--slow")
    if not quick and not slow:
        return
    listed = slow_tests()
    kept, left_out = list[pytest.Item](), list[pytest.Item]()
    for item in items:
        (kept if (function_of(item.nodeid) in listed) == slow else left_out).append(item)
    config.hook.pytest_deselected(items=left_out)
    items[:] = kept


class _Durations:
    """Sums the seconds of each test function; those of `listed`, which `--quick` does not run, stay in the list."""

    def __init__(self, listed: frozenset[str]) -> None:
        self._listed = listed
        self._seconds: dict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[function_of(report.nodeid)] += report.duration

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        if exitstatus == pytest.ExitCode.OK:
            found = self._listed | {name for name, seconds in self._seconds.items() if seconds >= LONG}
            LIST.write_text("".join(f"{name}\n" for name in sorted(found)), encoding="utf-8")
