"""Records the manifest of a run: its command line at once, the rest as soon as it is known."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from servetop.core.config import RunConfig
from servetop.core.tick import TICK_SECONDS
from servetop.engines.handle import LaunchedServer
from servetop.recordings.write.recorder import Recorder
from servetop.run.manifest.engine_variables import engine_variables, stable_argv
from servetop.run.manifest.machine_details import machine_details

FINISH_SECONDS = 2.0
"""Longest wait at the end of a run for details that are still being read."""
_NICENESS = 10
"""Of the thread that reads files and drivers, so that it delays neither engine nor senders."""


class ManifestRecorder:
    """Reads the details of the machine in a thread, and writes the manifest when it or the engine has more."""

    def __init__(
        self,
        config: RunConfig,
        recorder: Recorder,
        *,
        engine: Callable[[], LaunchedServer | None],
        command_line: Sequence[str],
    ) -> None:
        """`engine` returns the server that servetop started, once it is ready."""
        self._config = config
        self._recorder = recorder
        self._engine = engine
        self._details: dict[str, Any] = {"command_line": list(command_line)} if command_line else {}
        self._written: Mapping[str, Any] = dict(self._details)
        self._has_engine = False
        self._thread = threading.Thread(target=self._read, name="manifest", daemon=True)

    async def follow(self) -> None:
        """Start to read, and keep the recorded manifest up to date until cancelled."""
        self._thread.start()
        while self._thread.is_alive() or not self._has_engine:
            await asyncio.sleep(TICK_SECONDS)
            self._update()

    async def finish(self) -> None:
        """Write what is known at the end of the run, after at most FINISH_SECONDS."""
        if self._thread.is_alive():
            await asyncio.to_thread(self._thread.join, FINISH_SECONDS)
        self._update()

    def _update(self) -> None:
        launched = None if self._has_engine else self._engine()
        if launched is not None:
            self._has_engine = True
            self._details["engine"] = launched_details(launched)
        if (manifest := dict(self._details)) != self._written:
            self._recorder.set_manifest(manifest)
            self._written = manifest

    def _read(self) -> None:
        with suppress(AttributeError, OSError):  # on Linux a thread has a priority of its own
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
        for name, part in machine_details(self._config, os.environ):
            self._details[name] = part


def launched_details(server: LaunchedServer) -> dict[str, Any]:
    """Return the command line, program and environment of a server that servetop started."""
    import shutil

    program = shutil.which(server.argv[0]) or server.argv[0]
    return {
        "argv": stable_argv(server.argv, port=server.port),
        "executable": str(Path(program).absolute()),  # not resolved: the python of a virtual environment is a link
        "environment": engine_variables(server.environment),
    }
