"""All key bindings in one table, from which the bottom line and the help screen derive."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace

from textual.binding import Binding


@dataclass(frozen=True, slots=True)
class Key:
    """A key, its action, and its texts on the screen."""

    keys: str
    """Textual's names, separated by commas."""
    action: str
    _: KW_ONLY
    tooltip: str
    shown: str = ""
    """Its name on the screen; empty: the same as in `keys`."""
    label: str = ""
    """One or two words for the bottom line; empty omits it there."""
    tab: str = ""
    """For a key that shows a screen: the screen's name in the row of tabs."""
    priority: bool = False

    @property
    def caption(self) -> str:
        """Its name on the screen."""
        return self.shown or self.keys


STEERING = (
    Key("space", "toggle_clock", label="hold",
        tooltip="Hold the ramp, or continue it; in the past or after the end: play, pause"),
    Key("up", "arrow(-1)", shown="↑", tooltip="Request rate (QPS, RPS) +5 %; after the end: previous story line"),
    Key("down", "arrow(1)", shown="↓", tooltip="Request rate (QPS, RPS) −5 %; after the end: next story line"),
    Key("shift+up", "scale_rate(1.25)", shown="⇧↑", tooltip="Request rate +25 %"),
    Key("shift+down", "scale_rate(0.75)", shown="⇧↓", tooltip="Request rate −25 %"),
    Key("left_square_bracket", "bracket(-1)", shown="[",
        tooltip="Concurrency limit −10 %; sets one if there is none; in the past or after the end: previous event"),
    Key("right_square_bracket", "bracket(1)", shown="]",
        tooltip="Concurrency limit +10 %; in the past or after the end: next event"),
    Key("b", "step_batch_size(-1)",
        tooltip="Engine batch size (max_num_seqs) one step down; asks before it restarts an engine"),
    Key("B", "step_batch_size(1)",
        tooltip="Engine batch size (max_num_seqs) one step up; asks before it restarts an engine"),
    Key("p", "pause_load", label="pause", tooltip="Pause the load, or resume it"),
    Key("n", "next_stage", label="next", tooltip="Start the next stage now"),
    Key("N", "previous_stage", tooltip="Repeat the previous stage"),
    Key("o", "switch_loop", tooltip="Open loop (at the current rate) or closed loop (at the current concurrency)"),
    Key("F", "switch_search",
        tooltip="Find the largest load within --goodput: hand the load to a search, or take it back"),
    Key("s", "stop", tooltip="Stop the run: asks whether to drain or cancel; while it drains, cancels"),
    Key("x", "burst", label="burst", tooltip="Send a second's worth of requests at once"),
    Key("m", "mark", label="mark", tooltip="Mark this time with a note on the timeline"),
)  # fmt: skip
"""Keys that act on a live run."""

MOVING = (
    Key("left", "seek(-5)", shown="←", tooltip="Back 5 s; or the cursor back"),
    Key("right", "seek(5)", shown="→", tooltip="Forward 5 s, or the cursor forward"),
    Key("shift+left", "seek(-30)", shown="⇧←", tooltip="Back 30 s"),
    Key("shift+right", "seek(30)", shown="⇧→", tooltip="Forward 30 s"),
    Key("comma", "step(-1)", shown=",", tooltip="Back one tick (0.25 s), and pause"),
    Key("full_stop", "step(1)", shown=".", tooltip="Forward one tick (0.25 s), and pause"),
    Key("home", "go_to_start", shown="Home", tooltip="To the start"),
    Key("end,backslash", "go_to_edge", shown="End \\", tooltip="To the newest tick, and follow it"),
    Key("g", "enter_time", tooltip="Go to a time: 90, 1:30, 0:01:30 or 50%"),
    Key("c", "toggle_cursor", label="cursor",
        tooltip="Cursor on all charts: ← → and the mouse move it, all panels show its time; esc removes it"),
    Key("plus,equals_sign,greater_than_sign", "scale_speed(2)", shown="+ >", tooltip="Play twice as fast, up to ×64"),
    Key("minus,less_than_sign", "scale_speed(0.5)", shown="- <", tooltip="Play half as fast, down to ×0.25"),
)  # fmt: skip
"""Keys that move through time."""

VIEWING = (
    Key("z", "zoom", label="zoom", tooltip="Time axis: 30 s, 2 min, 10 min, all"),
    Key("t", "next_metric", label="metric", tooltip="Latency metric shown: TTFT, TPOT, ITL, E2EL"),
    Key("h", "heat", label="heat map",
        tooltip="Latency chart or heat map; large terminals show both"),
    Key("a", "baseline", tooltip="Lines and differences of the baseline (--against): hide, show"),
    Key("tab", "next_panel(1)", shown="Tab",
        tooltip="Select the next panel (⇧Tab: the previous one); a click does too"),
    Key("shift+tab", "next_panel(-1)", shown="⇧Tab", tooltip="Select the previous panel"),
    Key("enter", "maximise", shown="Enter",
        tooltip="Maximise the selected panel, or restore it (a double click does too); without a selection, after the "
        "end: go to the time of the story's selected line"),
    Key("1", "show_screen('live')", tab="Overview", tooltip="The live screen"),
    Key("2", "show_screen('requests')", tab="Requests",
        tooltip="Requests around this time (the cursor's, if it is shown): waterfall and table"),
    Key("3", "show_screen('distributions')", tab="Distributions",
        tooltip="Distributions of all latencies by stage, against --goodput: h ridges or curves"),
    Key("4", "show_screen('sweep')", tab="Sweep",
        tooltip="Batch size × request rate, throughput against latency; of a search: answer and loads"),
    Key("5,l", "show_screen('log')", shown="l 5", label="log", tab="Log",
        tooltip="Log of engine and servetop: v level, w wrap, / search, n N older and newer match"),
    Key("6", "show_screen('config')", tab="Configuration", tooltip="The configuration of the run"),
    Key("7", "show_screen('engine')", tab="Engine",
        tooltip="Everything else that the engine exports, such as speculative decoding"),
    Key("8", "show_screen('film')", tab="Batch film",
        tooltip="Batch film: the slots of the running batch over time; age, prefill, preemptions"),
    Key("9", "show_screen('comparison')", tab="Compare",
        tooltip="Comparison with the baseline (--against): changed keys, curves over the load, verdicts"),
    Key("P", "save_picture", tooltip="Save a picture of the screen (SVG, PNG) in the present directory"),
    Key("W", "write_report", tooltip="Write the report of a run that has ended (HTML) in the present directory"),
    Key("r", "recordings", tooltip="Open, rename or delete a recording"),
    Key("T", "next_theme", tooltip="Theme: dark, light, high contrast, 16 colours, none"),
    Key("ctrl+p,colon", "command_palette", shown=":", tooltip="Find any action"),
    Key("escape", "leave", shown="esc",
        tooltip="Back: restores the grid, then removes the cursor, then the selection, then the story"),
    Key("question_mark,f1", "help", shown="?", label="help", tooltip="All keys, and definitions"),
    Key("q,ctrl+q", "quit", shown="q", label="quit", tooltip="Quit; asks what should happen to the run"),
    Key("ctrl+c", "quit", shown="^C", priority=True, tooltip="The same; twice: cancel the requests in flight and stop"),
)  # fmt: skip
"""Keys that change what the screen shows."""


@dataclass(frozen=True, slots=True)
class Tab:
    """A screen in the row of tabs."""

    digit: str
    """The key that shows it."""
    screen: str
    """Its name in `show_screen`."""
    title: str


ALL_TABS = tuple(Tab(key.keys[0], key.action.split("'")[1], key.tab) for key in VIEWING if key.tab)
"""The screens behind the number keys, in their order: every row of `VIEWING` that has a tab."""
SWEEP, SEARCH_TITLE = "sweep", "Search"
"""The screen of a sweep, and its title in a search, which has another screen in its place."""
OF_CLIENTS = ("requests", "distributions", "sweep", "film", "comparison")
"""Screens that a watch does not have."""
TABS = ALL_TABS[:-1]
"""Those of a run without a baseline."""
DIGITS = f"{TABS[0].digit}-{TABS[-1].digit}"
"""Their keys on the bottom line."""

WRITING = ("save_picture", "write_report")
"""Actions that write files, which a read-only dashboard does not have."""
PLAYING = (
    Key("space", "toggle_clock", tooltip="Play, pause"),
    Key("left_square_bracket", "bracket(-1)", shown="[", tooltip="Previous event"),
    Key("right_square_bracket", "bracket(1)", shown="]", tooltip="Next event"),
    Key("up", "arrow(-1)", shown="↑", tooltip="After the end: previous story line"),
    Key("down", "arrow(1)", shown="↓", tooltip="After the end: next story line"),
)
"""What the steering keys do on a read-only dashboard."""


def tables(*, read_only: bool) -> Mapping[str, Sequence[Key]]:
    """Return the keys that have an effect, by what they act on."""
    if not read_only:
        return {"Steer the load (live runs)": STEERING, "Move through time": MOVING, "Change the view": VIEWING}
    shown = [key for key in VIEWING if key.action not in WRITING]
    viewing = [replace(key, tooltip="Open a recording") if key.action == "recordings" else key for key in shown]
    return {"Move through time": (*PLAYING, *MOVING), "Change the view": viewing}


def palette_entries(tables: Mapping[str, Sequence[Key]]) -> Iterable[tuple[str, Key]]:
    """Each action once, with the name of what it acts on: Load, Time, View, Screens, Recording, then servetop."""
    keys = itertools.chain.from_iterable(tables.values())
    once = {key.action: key for key in reversed(list(keys)) if key.action != "command_palette"}
    return sorted(((_group(key), key) for key in reversed(once.values())), key=lambda entry: _GROUPS.index(entry[0]))


def palette_title(group: str, caption: str, text: str) -> str:
    """Return one row of the palette: the group, the key and what it does, in columns."""
    return f"{group:<10} {caption:<8} {text}"


_GROUPS = ("Load", "Time", "View", "Screens", "Recording", "servetop")


def _group(key: Key) -> str:
    if key.tab:
        return "Screens"
    own = dict.fromkeys(("recordings", "mark", *WRITING), "Recording") | {"help": "servetop", "quit": "servetop"}
    table = "Time" if key in MOVING or key in PLAYING else "Load" if key in STEERING else "View"
    return own.get(key.action, table)


def bindings(*tables: Iterable[Key]) -> list[Binding]:
    """Textual's bindings for tables of keys."""
    return [
        Binding(
            key.keys,
            key.action,
            key.label or key.tooltip,
            show=bool(key.label),
            key_display=key.caption,
            tooltip=key.tooltip,
            priority=key.priority,
        )
        for table in tables
        for key in table
    ]


def hidden_bindings(*rows: tuple[str, str, str]) -> list[Binding]:
    """Bindings that the bottom line omits, from rows of keys, action and description."""
    return [Binding(keys, action, description, show=False) for keys, action, description in rows]


def line_bindings(action: str, unit: str) -> list[Binding]:
    """Up, down, page up and page down as `action`, which takes the lines to go down; `unit` names one line."""
    return hidden_bindings(
        ("up", f"{action}(-1)", f"{unit} up"),
        ("down", f"{action}(1)", f"{unit} down"),
        ("pageup", f"{action}(-20)", "page up"),
        ("pagedown", f"{action}(20)", "page down"),
    )


LIVE_LINE = (
    ("space", "hold"), ("↑↓", "rate"), ("[ ]", "concurrency"), ("b B", "batch size"), ("p", "pause"),
    ("m", "mark"), ("n", "next"), ("x", "burst"), ("t", "metric"), ("h", "heat map"), ("z", "zoom"),
    ("c", "cursor"), (DIGITS, "screens"), ("← →", "seek"), ("o", "open/closed"), ("s", "stop"), ("r", "recordings"),
    (":", "palette"),
)  # fmt: skip
"""Bottom line of a live run, most important first."""

REPLAY_LINE = (
    ("space", "play/pause"), ("← →", "5 s"), ("⇧← ⇧→", "30 s"), ("- +", "speed"), ("[ ]", "event"), ("c", "cursor"),
    ("g", "go to"), (", .", "tick"), ("t", "metric"), ("h", "heat map"), ("z", "zoom"), ("Tab Enter", "maximise"),
    (DIGITS, "screens"), ("r", "recordings"), (":", "palette"), ("Home End", "ends"),
)  # fmt: skip
"""Bottom line of a finished run, most important first."""

STORY_LINE = (("↑↓", "select"), ("Enter", "go there"), ("esc", "close"), *REPLAY_LINE)
"""Bottom line while the story of a finished run is shown, most important first."""

COMPARE = ("9", "compare")
"""Before all others on the bottom line of the overview, if there is a baseline."""

_LIVE_BEHIND = (("space", "hold"), ("p", "pause"), ("← →", "seek"), ("x", "burst"), ("m", "mark"))
_REPLAY_BEHIND = (("space", "play/pause"), ("← →", "5 s"), ("[ ]", "event"), ("g", "go to"), ("- +", "speed"))


def screen_line(own: Sequence[tuple[str, str]], *, steering: bool) -> Sequence[tuple[str, str]]:
    """Bottom line of a screen behind a number key: its own keys, then those that steer the run or move through it."""
    taken = {key for caption, _ in own for key in caption.split()}
    shared = _LIVE_BEHIND if steering else _REPLAY_BEHIND
    return (*own, *(each for each in shared if not taken & set(each[0].split())), (":", "palette"))


ALWAYS = (("?", "help"), ("q", "quit"))
"""At the right end of both lines."""
