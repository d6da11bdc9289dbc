"""`--on-episode`: judges the servers of a watch beside its loop, and runs a command when an episode begins or ends."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from servetop.analysis.fleet.server_episodes import EpisodeChange, ServerEpisodes
from servetop.core.errors import RecordingError
from servetop.run.watch.episode_commands import EpisodeCommands

if TYPE_CHECKING:
    from servetop.run.watch.watched_rows import WatchedRows

POLL_SECONDS = 0.5
LAST_SECONDS = 5.0
"""For which the end of the watch waits for commands that run."""


class EpisodeHook:
    """Reads the recording in a thread of its own, so that judging many servers does not delay the watch."""

    def __init__(self, recording: Path, commands: EpisodeCommands, *, note: Callable[[str], None]) -> None:
        self._recording, self._commands, self._note = recording, commands, note
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="on-episode")
        self._rows: WatchedRows | None = None
        self._episodes = ServerEpisodes()
        self._task = asyncio.create_task(self._follow())

    async def close(self) -> None:
        """End; commands that run have a few more seconds."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await asyncio.get_running_loop().run_in_executor(self._thread, self._close_rows)
        self._thread.shutdown(wait=False)
        await self._commands.close(seconds=LAST_SECONDS)

    async def _follow(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while True:
                await asyncio.sleep(POLL_SECONDS)
                for change in await loop.run_in_executor(self._thread, self._new_changes):
                    self._commands.add(change)
        except (RecordingError, OSError) as error:
            self._note(f"{error}: no further command is run")

    def _new_changes(self) -> list[EpisodeChange]:
        """Return what changed; in the thread."""
        if self._rows is None:
            from servetop.run.watch.watched_rows import WatchedRows  # what draws frames is not needed by other watches

            self._rows = WatchedRows(self._recording)
        new = self._rows.new()
        return [] if new is None else self._episodes.changes(new[1], new[0])

    def _close_rows(self) -> None:
        if self._rows is not None:
            with contextlib.suppress(RecordingError, OSError):
                self._rows.close()
