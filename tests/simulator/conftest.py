"""What tests of the simulator share."""

import pytest

from servetop.core.clock import MonotonicClock


@pytest.fixture
def clock() -> MonotonicClock:
    return MonotonicClock()
