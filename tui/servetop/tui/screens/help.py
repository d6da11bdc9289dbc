"""All keys, and what the numbers mean."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from servetop.core.trust import AGREEMENT_LIMIT, LOOP_LAG_LIMIT, SENT_SHARE_LIMIT, SLIP_LIMIT
from servetop.tui import formats
from servetop.tui.keys import STEERING, VIEWING, WATCHING

DEFINITIONS = (
    ("offered", "requests due by the schedule, per second; sent and done: those sent, and those answered well"),
    ("in flight", "sent and not finished; queued: due, but held back by the concurrency limit"),
    ("TTFT", "time to first token: first non-empty chunk − sent"),
    ("ITL", "inter-token latency: gap between chunks ÷ tokens of the later chunk, pooled over tokens"),
    ("E2E", "end to end: last byte − sent"),
    ("p50 p90 p99", "percentiles over the sliding window, within 1 % of the exact ones (the summary has those)"),
    ("KV blocks", "the engine's paged memory for running requests; full blocks make it preempt"),
    ("preemptions", "requests thrown out of the running batch, to be computed again later"),
    ("slip", f"sent − due; above {formats.seconds(SLIP_LIMIT)} at p99 the client is the bottleneck"),
    ("loop lag", f"lateness of the client's own timer; limit {formats.seconds(LOOP_LAG_LIMIT)} at p99"),
    ("sent / offered", f"below {SENT_SHARE_LIMIT:.0%} the offered load was not delivered"),
    ("Little's law", f"engine running + waiting against client in flight; within {AGREEMENT_LIMIT:.0%}"),
    ("tokens", f"the engine's count against the client's; within {AGREEMENT_LIMIT:.0%}"),
    ("time line", "┿ stage  ● command  ◆ mark  • note  ▲ warning  ✖ error"),
)


class HelpScreen(ModalScreen[None]):
    """Closes with escape, `?` or q."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,question_mark,q,f1", "dismiss", "close")]

    def compose(self) -> ComposeResult:
        """One scrolling text."""
        with VerticalScroll(classes="dialog help") as box:
            box.border_title = "servetop: keys and definitions"
            box.border_subtitle = "↑ ↓ scroll · esc closes"
            yield Static(help_text(), markup=False)


def help_text() -> str:
    """Keys by what they act on, then definitions."""
    sections = (
        ("Steer the load (while the run goes on)", STEERING),
        ("Move through time", WATCHING),
        ("Change the view", VIEWING),
    )
    lines: list[str] = []
    for heading, keys in sections:
        lines += [heading, *(f"  {key.caption:<8} {key.tooltip}" for key in keys), ""]
    lines += ["What is measured", *(f"  {name:<14} {meaning}" for name, meaning in DEFINITIONS)]
    return "\n".join(lines)
