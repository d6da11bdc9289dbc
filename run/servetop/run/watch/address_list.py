"""The present list of watched servers: read again when its file changes, or asked for again from time to time."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from pathlib import Path

from servetop.core.clock import Clock
from servetop.core.config import RunConfig
from servetop.core.config_values.watch_config import WatchConfig
from servetop.core.errors import EngineError, UsageError
from servetop.run.watch.addresses import WatchedAddress, distinct, read_addresses, resolved
from servetop.run.watch.prometheus_list import PrometheusList

LOOK_SECONDS = 1.0
"""Between two looks at the file."""
RESOLVE_SECONDS = 10.0
"""Between two resolutions of the names, or two queries of the Prometheus server."""

_Stamp = tuple[float, int, int] | None


class AddressList:
    """The servers of a watch; `changed` returns the list when it is another one than before."""

    def __init__(self, config: RunConfig, clock: Clock) -> None:
        watch = config.watch or WatchConfig()
        self._clock = clock
        self._file = None if watch.file is None else Path(watch.file)
        self._resolves = watch.all_addresses or watch.prometheus is not None
        self._prometheus = None
        if watch.prometheus is not None:
            self._prometheus = PrometheusList(watch.prometheus, config.engine)
        urls = [config.engine.url or "", *config.engine.more_urls]
        names = watch.names or ("",) * len(urls)
        self._listed: Sequence[WatchedAddress] = [
            WatchedAddress.parse(url, name=name) for url, name in zip(urls, names, strict=True)
        ]
        self._stamp: _Stamp = self._stamp_of_file()
        self._current: Sequence[WatchedAddress] = ()
        self._resolve_at = -math.inf
        self.trouble = ""
        """Why the list cannot be read again, so that the last one stays; empty if there is nothing to say."""

    async def first(self) -> Sequence[WatchedAddress]:
        """Return the list at the start; EngineError if a name cannot be resolved, or the Prometheus server has none."""
        self._current = await self._all()
        return self._current

    async def changed(self) -> Sequence[WatchedAddress] | None:
        """Wait until it is time to look again; return the new list, or None if it is the same."""
        await self._clock.sleep_until(self._clock.now() + LOOK_SECONDS)
        due = self._resolves and self._clock.now() >= self._resolve_at
        stamp = self._stamp_of_file()
        if stamp == self._stamp and not due:
            return None
        try:
            if stamp != self._stamp and self._file is not None:
                self._stamp = stamp
                self._listed = await asyncio.to_thread(read_addresses, self._file)
            found = await self._all()
        except (UsageError, EngineError) as error:
            self.trouble = f"{error}: the last list stays in force"
            return None
        self.trouble = ""
        before, self._current = self._current, found
        return None if found == before else found

    async def _all(self) -> Sequence[WatchedAddress]:
        if not self._resolves:
            return tuple(self._listed)
        self._resolve_at = self._clock.now() + RESOLVE_SECONDS
        if self._prometheus is not None:
            return await self._prometheus.addresses()
        found = [each for listed in self._listed for each in await resolved(listed)]
        return distinct({each.url: each for each in found}.values())

    async def close(self) -> None:
        """Close the connection to the Prometheus server, if there is one."""
        if self._prometheus is not None:
            await self._prometheus.close()

    def _stamp_of_file(self) -> _Stamp:
        """Return what changes when the file is written; None without a file, and while it is missing."""
        if self._file is None:
            return None
        try:
            stat = self._file.stat()
        except OSError:
            return None
        return stat.st_mtime, stat.st_size, stat.st_ino
