"""Settings of all tests."""

import gc
import os

import pytest
from hypothesis import settings

from tests.clean_environment import OF_THE_PROCESSOR, clean_this_process
from tests.slow_tests import pytest_addoption, pytest_collection_modifyitems, pytest_configure

__all__ = ["pytest_addoption", "pytest_collection_modifyitems", "pytest_configure"]

clean_this_process()  # here, before the product is imported, and in the processes of pytest-xdist once more

# The collector looks through all tests and modules again and again, a seventh of the suite's processor time: fewer
# rounds. (gc.freeze would spare more, but then older versions of Hypothesis find no owner of their random numbers.)
gc.set_threshold(50_000, 20, 20)

# On a shared machine a slow example is no failure; in CI the same examples every time, elsewhere new ones.
settings.register_profile("servetop", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("servetop")


@pytest.fixture
def without_processor_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the settings of OpenBLAS from a test that compares recorded variables and starts no process."""
    for name in OF_THE_PROCESSOR:
        monkeypatch.delenv(name, raising=False)
