"""All key bindings in one table, from which the bottom line and the help screen derive."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from textual.binding import Binding


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A key, its action, and its texts on the screen."""

    keys: str
    """Textual's names, separated by commas."""
    action: str
    caption: str
    """The key as users know it."""
    label: str
    """One or two words for the bottom line; empty omits it there."""
    tooltip: str
    priority: bool = False


STEERING = (
    Key(keys="space", action="toggle_clock", caption="space", label="hold",
        tooltip="Hold the ramp, or continue it; in the past or after the end: play, pause"),
    Key(keys="up", action="scale_rate(1.05)", caption="↑", label="", tooltip="Request rate +5 %"),
    Key(keys="down", action="scale_rate(0.95)", caption="↓", label="", tooltip="Request rate −5 %"),
    Key(keys="shift+up", action="scale_rate(1.25)", caption="⇧↑", label="", tooltip="Request rate +25 %"),
    Key(keys="shift+down", action="scale_rate(0.75)", caption="⇧↓", label="", tooltip="Request rate −25 %"),
    Key(keys="left_square_bracket", action="bracket(-1)", caption="[", label="",
        tooltip="Concurrency limit −10 %; sets one if there is none; in the past or after the end: previous event"),
    Key(keys="right_square_bracket", action="bracket(1)", caption="]", label="",
        tooltip="Concurrency limit +10 %; in the past or after the end: next event"),
    Key(keys="b", action="step_batch_size(-1)", caption="b", label="",
        tooltip="Engine batch size (max_num_seqs) one step down; asks before it restarts an engine"),
    Key(keys="B", action="step_batch_size(1)", caption="B", label="",
        tooltip="Engine batch size (max_num_seqs) one step up; asks before it restarts an engine"),
    Key(keys="p", action="pause_load", caption="p", label="pause", tooltip="Pause the load, or resume it"),
    Key(keys="n", action="next_stage", caption="n", label="next", tooltip="Start the next stage now"),
    Key(keys="N", action="previous_stage", caption="N", label="", tooltip="Repeat the previous stage"),
    Key(keys="o", action="switch_loop", caption="o", label="",
        tooltip="Open loop (at the current rate) or closed loop (at the current concurrency)"),
    Key(keys="s", action="stop", caption="s", label="",
        tooltip="Stop the run: asks whether to drain or cancel; while it drains, cancels"),
    Key(keys="x", action="burst", caption="x", label="burst", tooltip="Send a second's worth of requests at once"),
    Key(keys="m", action="mark", caption="m", label="mark", tooltip="Mark this time with a note on the timeline"),
)  # fmt: skip
"""Keys that act on a live run."""

MOVING = (
    Key(keys="left", action="seek(-5)", caption="←", label="", tooltip="Back 5 s; or the cursor back"),
    Key(keys="right", action="seek(5)", caption="→", label="", tooltip="Forward 5 s, or the cursor forward"),
    Key(keys="shift+left", action="seek(-30)", caption="⇧←", label="", tooltip="Back 30 s"),
    Key(keys="shift+right", action="seek(30)", caption="⇧→", label="", tooltip="Forward 30 s"),
    Key(keys="comma", action="step(-1)", caption=",", label="", tooltip="Back one tick (0.25 s), and pause"),
    Key(keys="full_stop", action="step(1)", caption=".", label="", tooltip="Forward one tick (0.25 s), and pause"),
    Key(keys="home", action="go_to_start", caption="Home", label="", tooltip="To the start"),
    Key(keys="end,backslash", action="go_to_edge", caption="End \\", label="",
        tooltip="To the newest tick, and follow it"),
    Key(keys="g", action="enter_time", caption="g", label="",
        tooltip="Go to a time: 90, 1:30, 0:01:30 or 50%"),
    Key(keys="c", action="toggle_cursor", caption="c", label="cursor",
        tooltip="Cursor on all charts: ← → and the mouse move it, all panels show its time; esc removes it"),
    Key(keys="plus,equals_sign,greater_than_sign", action="scale_speed(2)", caption="+ >", label="",
        tooltip="Play twice as fast, up to ×64"),
    Key(keys="minus,less_than_sign", action="scale_speed(0.5)", caption="- <", label="",
        tooltip="Play half as fast, down to ×0.25"),
)  # fmt: skip
"""Keys that move through time."""

VIEWING = (
    Key(keys="z", action="zoom", caption="z", label="zoom", tooltip="Time axis: 30 s, 2 min, 10 min, all"),
    Key(keys="t", action="next_metric", caption="t", label="metric", tooltip="Charted latency: TTFT, ITL, E2EL"),
    Key(keys="h", action="heat", caption="h", label="heat map",
        tooltip="Latency chart or heat map, distribution or histogram; large terminals show both"),
    Key(keys="tab", action="next_panel(1)", caption="Tab", label="",
        tooltip="Select the next panel (⇧Tab: the previous one); a click does too"),
    Key(keys="shift+tab", action="next_panel(-1)", caption="⇧Tab", label="", tooltip="Select the previous panel"),
    Key(keys="enter", action="maximise", caption="Enter", label="",
        tooltip="Maximise the selected panel, or restore it; a double click does too"),
    Key(keys="1", action="show_screen('live')", caption="1", label="", tooltip="The live screen"),
    Key(keys="2", action="show_screen('requests')", caption="2", label="",
        tooltip="Requests around this time (the cursor's, if it is shown): waterfall and table"),
    Key(keys="3", action="show_screen('distributions')", caption="3", label="",
        tooltip="Distributions of all latencies by stage, against --goodput"),
    Key(keys="4", action="show_screen('sweep')", caption="4", label="",
        tooltip="Batch size × request rate, as measured; throughput against latency"),
    Key(keys="l,5", action="show_screen('log')", caption="l 5", label="log",
        tooltip="Log of engine and servetop: v level, / search, n N older and newer match"),
    Key(keys="6", action="show_screen('config')", caption="6", label="", tooltip="The configuration of the run"),
    Key(keys="r", action="recordings", caption="r", label="", tooltip="Recordings: open, rename or delete one"),
    Key(keys="T", action="next_theme", caption="T", label="",
        tooltip="Theme: dark, light, high contrast, 16 colours, none"),
    Key(keys="ctrl+p,colon", action="command_palette", caption=":", label="", tooltip="Find any action"),
    Key(keys="escape", action="leave", caption="esc", label="",
        tooltip="Back: restores the grid, then removes the cursor, then the selection"),
    Key(keys="question_mark,f1", action="help", caption="?", label="help", tooltip="All keys, and definitions"),
    Key(keys="q,ctrl+q", action="quit", caption="q", label="quit", tooltip="Quit; asks what should happen to the run"),
    Key(keys="ctrl+c", action="quit", caption="^C", label="", priority=True,
        tooltip="The same; twice: cancel the requests in flight and stop"),
)  # fmt: skip
"""Keys that change what the screen shows."""


_PLAYING = (
    Key(keys="space", action="toggle_clock", caption="space", label="", tooltip="Play, pause"),
    Key(keys="left_square_bracket", action="bracket(-1)", caption="[", label="", tooltip="Previous event"),
    Key(keys="right_square_bracket", action="bracket(1)", caption="]", label="", tooltip="Next event"),
)
"""What the steering keys do on a read-only dashboard."""


def tables(*, read_only: bool) -> Mapping[str, Sequence[Key]]:
    """The keys that have an effect, by what they act on."""
    if not read_only:
        return {"Steer the load (live runs)": STEERING, "Move through time": MOVING,
                "Change the view": VIEWING}  # fmt: skip
    viewing = [replace(key, tooltip="Recordings: open one") if key.action == "recordings" else key for key in VIEWING]
    return {"Move through time": (*_PLAYING, *MOVING), "Change the view": viewing}


def bindings(*tables: Iterable[Key]) -> list[Binding]:
    """Textual's bindings for tables of keys."""
    return [
        Binding(
            key.keys, key.action, key.label or key.tooltip, show=bool(key.label), key_display=key.caption,
            tooltip=key.tooltip, priority=key.priority,
        )
        for table in tables
        for key in table
    ]  # fmt: skip


def line_bindings(action: str, unit: str) -> list[Binding]:
    """Up, down, page up and page down as `action`, which takes the lines to go down; `unit` names one line."""
    return [
        Binding("up", f"{action}(-1)", f"{unit} up", show=False),
        Binding("down", f"{action}(1)", f"{unit} down", show=False),
        Binding("pageup", f"{action}(-20)", "page up", show=False),
        Binding("pagedown", f"{action}(20)", "page down", show=False),
    ]


LIVE_LINE = (
    ("space", "hold"), ("↑↓", "rate"), ("[ ]", "concurrency"), ("b B", "batch size"), ("p", "pause"),
    ("m", "mark"), ("n", "next"), ("x", "burst"), ("t", "metric"), ("h", "heat map"), ("z", "zoom"),
    ("c", "cursor"), ("1-6", "screens"), ("← →", "seek"), ("o", "open/closed"), ("s", "stop"), ("r", "recordings"),
    (":", "palette"),
)  # fmt: skip
"""Bottom line of a live run, most important first."""

REPLAY_LINE = (
    ("space", "play/pause"), ("← →", "5 s"), ("⇧← ⇧→", "30 s"), ("- +", "speed"), ("[ ]", "event"), ("c", "cursor"),
    ("g", "go to"), (", .", "tick"), ("t", "metric"), ("h", "heat map"), ("z", "zoom"), ("Tab Enter", "maximise"),
    ("1-6", "screens"), ("r", "recordings"), (":", "palette"), ("Home End", "ends"),
)  # fmt: skip
"""Bottom line of a finished run, most important first."""

ALWAYS = (("?", "help"), ("q", "quit"))
"""At the right end of both lines."""
