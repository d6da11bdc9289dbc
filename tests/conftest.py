"""Settings of all tests."""

import os

from hypothesis import settings

# On a shared machine a slow example is no failure; in CI the same examples every time, elsewhere new ones.
settings.register_profile("servetop", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("servetop")
