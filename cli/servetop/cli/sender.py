"""The sender process: the load generator's loop, given the dialect of the engine that it is to drive."""

from __future__ import annotations

import sys

from servetop.core.wire import Dialect
from servetop.engines.dialects.choose import dialect_for
from servetop.loadgen.child import serve_sender
from servetop.loadgen.messages import SenderSetup


def chosen_dialect(setup: SenderSetup) -> Dialect:
    """The wire that the set-up names."""
    return dialect_for(setup.wire, model=setup.model, continuous_usage=setup.continuous_usage)


if __name__ == "__main__":
    sys.exit(serve_sender(chosen_dialect))
