"""What a dashboard gets besides its run: the shelf of recordings, the theme that was chosen last, how it moves."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from servetop.cli.options.output_options import DisplayOptions
from servetop.core.errors import UsageError
from servetop.tui.drawing.palette import THEME_NAMES

if TYPE_CHECKING:
    from servetop.core.events import Note
    from servetop.core.interfaces.recording_store import RecordingStore
    from servetop.tui.options import DashboardOptions

MOTION_VARIABLES = ("SERVETOP_REDUCED_MOTION", "REDUCE_MOTION")
_NO = ("", "0", "false", "no", "off")


def check_theme(name: str) -> str:
    """The name; UsageError for one that is no theme's."""
    if name and name not in THEME_NAMES:
        raise UsageError(f"there is no theme {name!r}: choose one of {', '.join(THEME_NAMES)}")
    return name


def dashboard_options(
    display: DisplayOptions,
    store: RecordingStore,
    *,
    browse: bool = False,
    exit_requested: Callable[[], str] | None = None,
    read_only: bool = False,
    unrecorded_notes: Callable[[], Sequence[Note]] | None = None,
) -> DashboardOptions:
    """The command line first, then the environment and what was remembered; UsageError for an unknown theme."""
    from servetop.tui.options import DashboardOptions

    remembered = remembered_theme()
    return DashboardOptions(
        store=store,
        browse=browse,
        theme=check_theme(display.theme) or (remembered if remembered in THEME_NAMES else ""),
        reduced_motion=display.reduced_motion or wants_less_motion(os.environ),
        remember_theme=None if read_only else remember_theme,
        exit_requested=exit_requested,
        read_only=read_only,
        unrecorded_notes=unrecorded_notes,
    )


def wants_less_motion(environment: Mapping[str, str]) -> bool:
    """One of the two variables is set to anything but 0, false, no or off."""
    return any(environment.get(name, "").strip().lower() not in _NO for name in MOTION_VARIABLES)


def _theme_file() -> Path:
    import platformdirs

    return platformdirs.user_config_path("servetop") / "theme"


def remembered_theme() -> str:
    """The theme chosen by key in an earlier dashboard; empty when there was none, or it cannot be read."""
    with contextlib.suppress(OSError, ValueError):
        return _theme_file().read_text(encoding="utf-8")[:40].strip()
    return ""


def remember_theme(name: str) -> None:
    """For the next dashboard; a folder that cannot be written to is no reason to complain."""
    with contextlib.suppress(OSError):
        file = _theme_file()
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name + "\n", encoding="utf-8")


Handler = Callable[[int, FrameType | None], object]


def end_with_terminal(handler: Handler | signal.Handlers = signal.SIG_DFL) -> None:
    """A dashboard has nothing to do once its terminal is gone, also where `nohup` says to go on: `handler` ends it.

    The kernel tells the session's leader alone: under a shell that stays (or ignores the hang-up) nobody would tell
    the dashboard, and it would read end after end of its input as fast as it can.
    """
    if not hasattr(signal, "SIGHUP"):
        return
    signal.signal(signal.SIGHUP, handler)
    if sys.stdin.isatty():
        threading.Thread(target=_hang_up_with, args=(sys.stdin.fileno(),), name="terminal", daemon=True).start()


def _hang_up_with(terminal: int) -> None:
    watch = select.poll()
    watch.register(terminal, 0)  # a hang-up is told without being asked for
    if any(what & select.POLLHUP for _, what in watch.poll()):
        os.kill(os.getpid(), signal.SIGHUP)
