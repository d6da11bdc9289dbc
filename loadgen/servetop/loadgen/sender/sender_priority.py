"""Runs a sender in the real-time class while it needs little of a processor (docs/decisions/006-sender-priority.md)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from servetop.core.system.scheduling import enter_real_time, leave_real_time
from servetop.core.tick import TICK_SECONDS, SenderClass

MAX_SHARE = 0.5
"""Largest share of a processor for one sender in the real-time class, and of all processors for all senders."""
_WINDOW_TICKS, _CALM_TICKS = 4, 20
"""Ticks over which the share is measured to leave the class, and to return to it."""
_CALM = 0.5
"""Fraction of the permitted share below which a sender that left the class returns to it."""


class SenderPriority:
    """Enters the class when the load begins, leaves it when the sender needs too much, and returns when it is calm."""

    def __init__(
        self,
        *,
        processors: int,
        senders: int,
        enter: Callable[[], bool] = enter_real_time,
        leave: Callable[[], None] = leave_real_time,
    ) -> None:
        self._limit = min(MAX_SHARE, MAX_SHARE * processors / senders)
        self._enter = enter
        self._leave = leave
        self._reason = ""
        self._used: deque[float] = deque(maxlen=_CALM_TICKS)
        """Processor seconds of each tick since the class was entered or left."""
        self.sender_class: SenderClass | None = None
        """None before the load begins."""

    def begin(self) -> None:
        """Enter the class, if that has not been tried yet."""
        if self.sender_class is None:
            self._try_to_enter()

    def update(self, cpu_seconds: float) -> str:
        """Take the processor time of one tick; return why the class was left, empty if it was not."""
        self._used.append(cpu_seconds)
        if self.sender_class is SenderClass.REAL_TIME and (share := self._share(_WINDOW_TICKS)) > self._limit:
            self._go(f"it needed {share:.0%} of a processor, at most {self._limit:.0%} is left to it")
        elif self.sender_class is SenderClass.LEFT and not self._reason and self._is_calm:
            self._try_to_enter()
        reason, self._reason = self._reason, ""
        return reason

    def computed_too_long(self) -> None:
        """Leave the class at once: the kernel reports that the sender computes without a pause."""
        if self.sender_class is SenderClass.REAL_TIME:
            self._go("it computed without a pause")

    def _try_to_enter(self) -> None:
        self.sender_class = SenderClass.REAL_TIME if self._enter() else SenderClass.ORDINARY
        self._used.clear()

    def _go(self, reason: str) -> None:
        self._leave()
        self.sender_class = SenderClass.LEFT
        self._reason = f"the sender left the real-time class: {reason}"
        self._used.clear()

    def _share(self, ticks: int) -> float:
        """Return the mean share of a processor over the last ticks; 0 before there are as many."""
        if len(self._used) < ticks:
            return 0.0
        return sum(list(self._used)[-ticks:]) / (ticks * TICK_SECONDS)

    @property
    def _is_calm(self) -> bool:
        return len(self._used) == _CALM_TICKS and self._share(_CALM_TICKS) < _CALM * self._limit
