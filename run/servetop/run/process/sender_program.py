"""The sender process: the load generator's loop, given the dialect of the engine that it is to drive."""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from servetop.core.interfaces.dialect import Dialect
    from servetop.loadgen.messages import SenderSetup


def chosen_dialect(setup: SenderSetup) -> Dialect:
    """The wire that the set-up names."""
    from servetop.engines.dialects.registry import dialect_for

    return dialect_for(setup.dialect, model=setup.model, continuous_usage=setup.continuous_usage)


def main() -> int:
    """Load the load generator, and be a sender until standard input closes; the exit code."""
    gc.disable()  # what is loaded stays: looking for garbage in it takes a tenth of the time
    from servetop.loadgen.worker.sender_main import serve_sender

    gc.enable()
    return serve_sender(chosen_dialect)


if __name__ == "__main__":
    sys.exit(main())
