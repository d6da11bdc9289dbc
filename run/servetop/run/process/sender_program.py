"""The sender process: runs the load generator with the dialect of the engine."""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from servetop.core.interfaces.dialect import Dialect
    from servetop.loadgen.messages import SenderSetup


def chosen_dialect(setup: SenderSetup) -> Dialect:
    """Return the dialect that the set-up names."""
    from servetop.engines.dialects.dialect_registry import dialect_for

    return dialect_for(setup.dialect, model=setup.model, continuous_usage=setup.continuous_usage)


def main() -> int:
    """Load the load generator, and send requests until standard input closes; return the exit code."""
    gc.disable()  # imported modules stay: collecting them would take a tenth of the time
    from servetop.loadgen.worker.sender_main import serve_sender

    gc.enable()
    return serve_sender(chosen_dialect)


if __name__ == "__main__":
    sys.exit(main())
