"""Stops an engine, and reports the result: signals sent, and what is left."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from servetop.core.text import formats

if TYPE_CHECKING:
    from servetop.engines.engine import Engine
    from servetop.engines.process.engine_process import EngineProcess


@dataclass(frozen=True, slots=True, kw_only=True)
class StopReport:
    """The result of stopping an engine; clean if `leftover_pids` is empty and `port_free` is true."""

    seconds: float = 0.0
    signals: tuple[str, ...] = ()
    """Signals that were sent, in order; empty if the process had already exited, or the engine was attached."""
    exit_code: int | None = None
    leftover_pids: tuple[int, ...] = ()
    port_free: bool | None = None
    """None: the engine was attached, and is not stopped."""
    gpu_memory: int | None = None
    """Bytes of GPU memory that it still holds; None: unknown."""

    @property
    def trouble(self) -> str | None:
        """What the user must clean up, in one line; None if nothing is left."""
        if self.leftover_pids:
            pids = " ".join(map(str, self.leftover_pids))
            return f"processes of the engine are still running: try kill -9 {pids}"
        if self.gpu_memory:
            size = formats.memory(self.gpu_memory)
            return f"the engine has exited, but {size} of its GPU memory is still in use: see servetop doctor"
        return "the engine has exited, but its port is still in use" if self.port_free is False else None


async def stop_process(
    process: EngineProcess | None, engine: Engine, *, port: int | None, timeout: float | None = None
) -> StopReport:
    """Stop a server process and report what is left; None: nothing to stop."""
    if process is None:
        return StopReport()
    from servetop.engines.process.ports import port_is_free  # needed only for started engines

    report = await process.stop(engine.stop_grace_period if timeout is None else timeout, first=engine.stop_signal)
    return replace(report, port_free=port is None or port_is_free(port))
