"""The command of an audited client: where it takes the simulator's address, and the client's process."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self
from urllib.parse import urlsplit

from servetop.core.clock import Clock
from servetop.core.errors import UsageError
from servetop.core.events import LogLine
from servetop.engines.process.engine_process import EngineProcess
from servetop.engines.process.log_filter import LogCapture

PREFIX = "SERVETOP_AUDIT_"
"""Of the environment variables of the client: `SERVETOP_AUDIT_URL` and so on."""
_ADDRESS = ("{url}", "{host}", "{port}", PREFIX)
TAIL_LINES = 15
"""Lines of the client's output that are repeated if it fails."""
STOP_TIMEOUT = 10.0
"""Seconds that a client has after the first signal, to write its results."""


def check_command(words: Sequence[str]) -> None:
    """Raise UsageError for a command that is empty or does not use the simulator's address."""
    if not words:
        raise UsageError(
            "no client to audit: add its command after --, as in servetop audit -- vllm bench serve --base-url {url} …"
        )
    if not any(place in word for word in words for place in _ADDRESS):
        raise UsageError(
            f"the command of the client does not use the simulator's address: write {{url}} where it takes the URL "
            f"of the server, or {{host}} and {{port}} (or use ${PREFIX}URL)"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientAddress:
    """The address of the simulator, as the client needs it."""

    url: str
    model: str
    """The served name."""

    @property
    def values(self) -> Mapping[str, str]:
        """The values by the name of their placeholder."""
        parts = urlsplit(self.url)
        return {"url": self.url, "host": parts.hostname or "", "port": str(parts.port), "model": self.model}

    def filled_in(self, words: Sequence[str]) -> tuple[str, ...]:
        """Return a command with the values in place of `{url}`, `{host}`, `{port}` and `{model}`."""
        filled = []
        for word in words:
            for name, value in self.values.items():
                word = word.replace(f"{{{name}}}", value)
            filled.append(word)
        return tuple(filled)

    def environment(self) -> dict[str, str]:
        """Return the same values as environment variables."""
        return {f"{PREFIX}{name.upper()}": value for name, value in self.values.items()}


class AuditedClient:
    """A running client in a process group of its own, whose output is forwarded line by line."""

    def __init__(self, process: EngineProcess) -> None:
        self._process = process

    @classmethod
    async def start(
        cls, words: Sequence[str], address: ClientAddress, *, clock: Clock, on_line: Callable[[str], None]
    ) -> Self:
        """Run the command in this folder; EngineError if it cannot be run."""

        def forward(line: LogLine) -> None:
            on_line(line.text)

        argv, log = address.filled_in(words), LogCapture(clock, forward)
        return cls(await EngineProcess.start(argv, env=address.environment(), log=log, clock=clock, cwd=os.getcwd()))

    async def wait(self) -> None:
        """Return when the client has ended."""
        await self._process.exited.wait()

    async def stop(self) -> None:
        """End the client and all its processes: with SIGINT, and those that are left after STOP_TIMEOUT by force."""
        await self._process.stop(STOP_TIMEOUT)

    def hurry(self) -> None:
        """Shorten a `stop` in progress to a few seconds."""
        self._process.hurry()

    @property
    def exit_code(self) -> int | None:
        """The exit status, negative for a signal; None while it runs."""
        return self._process.returncode

    @property
    def ending(self) -> str:
        """How it ended, as in `exited with status 1`."""
        return self._process.exit_description()

    @property
    def last_lines(self) -> tuple[str, ...]:
        """The last lines of its output."""
        return self._process.log.tail(TAIL_LINES)
