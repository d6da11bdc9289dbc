"""The keys of a watch: those that have an effect without a load of one's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from servetop.tui.keys import DIGITS, MOVING, OF_CLIENTS, PLAYING, REPLAY_LINE, VIEWING, WRITING, Key

_WITHOUT_EFFECT = (
    "next_metric",
    "heat",
    "baseline",
    "write_report",
    *(f"show_screen('{screen}')" for screen in OF_CLIENTS),
)
"""Actions that need requests, or a load."""
_PLAYING = tuple(key for key in PLAYING if not key.action.startswith("arrow"))
_SERVERS = (
    Key("up", "arrow(-1)", shown="↑", tooltip="Select the server above, in the table of servers"),
    Key("down", "arrow(1)", shown="↓", tooltip="Select the server below, in the table of servers"),
)
"""Keys of a watch of several servers, besides those of any."""
_ENTER = {
    False: "Maximise the selected panel, or restore it (a double click does too)",
    True: "Show the selected server alone, on all screens; with a selected panel: maximise it, or restore it",
}
_ESCAPE = {
    False: "Back: restores the grid, then removes the cursor, then the selection",
    True: "Back: restores the grid, then removes the cursor, then the selection of a panel; from one server to all",
}
_QUIT = {
    "Quit; asks what should happen to the run": "Quit; asks what should happen to the watch",
    "The same; twice: cancel the requests in flight and stop": "The same; twice: end the watch",
}
"""What leaving does, by the text of a run."""

WATCH_LINE = (
    *(row for row in REPLAY_LINE if row[0] not in ("t", "h", DIGITS)), ("1 5 6 7", "screens"),
)  # fmt: skip
"""Bottom line of a watch, live or finished, most important first: no key steers anything."""
FLEET_LINE = (("↑↓", "server"), ("Enter", "open"), *WATCH_LINE)
"""Bottom line of a watch of several servers."""
OPENED_LINE = (("esc", "all servers"), *WATCH_LINE)
"""Bottom line while one of several servers is shown alone."""


def watch_tables(*, read_only: bool, several: bool) -> Mapping[str, Sequence[Key]]:
    """Return the keys that have an effect in a watch, by what they act on; `several`: it has a table of servers."""
    omitted = (*_WITHOUT_EFFECT, *(WRITING if read_only else ()))
    texts = {"maximise": _ENTER[several], "leave": _ESCAPE[several]}
    if read_only:
        texts["recordings"] = "Open a recording"
    shown = [replace(key, tooltip=_QUIT.get(key.tooltip, key.tooltip)) for key in VIEWING if key.action not in omitted]
    return {
        **({"Select a server": _SERVERS} if several else {}),
        "Move through time": (*_PLAYING, *MOVING),
        "Change the view": [replace(key, tooltip=texts.get(key.action, key.tooltip)) for key in shown],
    }
