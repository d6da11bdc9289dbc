"""Options of the dashboard's display: theme, motion, and what happens when the terminal closes."""

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
from servetop.cli.viewing.baseline_file import baseline_opener, comparer
from servetop.cli.viewing.new_files import save_picture, write_report
from servetop.core.errors import UsageError
from servetop.tui.drawing.palette import THEME_NAMES

if TYPE_CHECKING:
    from servetop.analysis.sweep.sweep_verdict import SweepVerdict
    from servetop.core.events import Note
    from servetop.core.interfaces.recording_store import RecordingStore
    from servetop.tui.options import DashboardOptions

MOTION_VARIABLES = ("SERVETOP_REDUCED_MOTION", "REDUCE_MOTION")
_NO = ("", "0", "false", "no", "off")


def check_theme(name: str) -> str:
    """Return the name; UsageError if there is no such theme."""
    if name and name not in THEME_NAMES:
        raise UsageError(f"invalid theme {name!r}: use one of {', '.join(THEME_NAMES)}")
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
    """Options from the command line, then the environment and the remembered theme; UsageError for an unknown theme."""
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
        baseline=baseline_opener(display),
        compare=comparer(display),
        read_sweep=read_sweep,
        save_picture=None if read_only else save_picture,
        write_report=None if read_only else write_report,
    )


def read_sweep(path: Path) -> SweepVerdict | None:
    """Judges the cells of a recorded sweep; None for other runs, RecordingError if it cannot be read."""
    from servetop.recordings.read.reader import RecordingReader
    from servetop.reports.summary.run_story import recorded_sweep

    with contextlib.closing(RecordingReader.open(path)) as reader:
        return recorded_sweep(reader)


def wants_less_motion(environment: Mapping[str, str]) -> bool:
    """Whether one of the two variables is set to anything but 0, false, no or off."""
    return any(environment.get(name, "").strip().lower() not in _NO for name in MOTION_VARIABLES)


def _theme_file() -> Path:
    import platformdirs

    return platformdirs.user_config_path("servetop") / "theme"


def remembered_theme() -> str:
    """Return the theme selected by key in an earlier dashboard; empty if there was none or it cannot be read."""
    with contextlib.suppress(OSError, ValueError):
        return _theme_file().read_text(encoding="utf-8")[:40].strip()
    return ""


def remember_theme(name: str) -> None:
    """Stores the theme for the next dashboard; ignores a folder that cannot be written."""
    with contextlib.suppress(OSError):
        file = _theme_file()
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name + "\n", encoding="utf-8")


Handler = Callable[[int, FrameType | None], object]


def end_with_terminal(handler: Handler | signal.Handlers = signal.SIG_DFL) -> None:
    """Calls `handler` when the terminal closes, even under `nohup`: a dashboard is useless without its terminal.

    The kernel signals the session leader only. Under a shell that stays, or ignores the hang-up, the dashboard would
    get no signal and would read end-of-file in a busy loop.
    """
    if not hasattr(signal, "SIGHUP"):
        return
    signal.signal(signal.SIGHUP, handler)
    if sys.stdin.isatty():
        threading.Thread(target=_hang_up_with, args=(sys.stdin.fileno(),), name="terminal", daemon=True).start()


def _hang_up_with(terminal: int) -> None:
    watch = select.poll()
    watch.register(terminal, 0)  # poll reports a hang-up without being asked to
    if any(what & select.POLLHUP for _, what in watch.poll()):
        os.kill(os.getpid(), signal.SIGHUP)
