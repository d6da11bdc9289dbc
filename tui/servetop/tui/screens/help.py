"""The help screen: all keys, and the definitions of the metrics."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.geometry import Size
from textual.widget import Widget

from servetop.analysis.series.stats_series import FELT_SECONDS, FELT_SHARE
from servetop.analysis.trust.trust import AGREEMENT_LIMIT, LATENESS_SHARE, SENT_SHARE_LIMIT, SLIP_LIMIT, TURNAROUND
from servetop.core.text import formats
from servetop.tui.drawing.palette import STYLES
from servetop.tui.drawing.text_runs import Lines, TextRow
from servetop.tui.keys import Key
from servetop.tui.screens.modal import Modal

_INDENT = 18

DEFINITIONS = (
    (
        "offered",
        "requests due by the schedule, per second; sent: requests sent; done: requests completed without error",
    ),
    (
        "target",
        "the rate in force; done is charted as the mean of 5 s; the dotted lines hold most single seconds of 15 s; "
        "▲ is the highest second above the chart",
    ),
    ("in flight", "sent and not finished; queued: due, but waiting in the client for the concurrency limit"),
    (
        "TTFT",
        "time to first token: first non-empty chunk − sent; as felt: − due, shown apart where it exceeds the other by "
        f"{FELT_SHARE:.0%} and {formats.seconds(FELT_SECONDS)}, and charted",
    ),
    ("TPOT", "time per output token: (E2EL − TTFT) ÷ later tokens, one value per request"),
    ("SLO", "requests that met every objective of --goodput, from due, of those that ended: in the window, and so far"),
    (
        "where TTFT goes",
        "mean from due: client queue (concurrency limit, slip); network (sent to first token, minus the engine's own "
        "TTFT); queue and prefill as the engine reports them when requests end, or from the requests waiting there",
    ),
    ("ITL", "inter-token latency: gap between chunks ÷ tokens of the later chunk, pooled over tokens"),
    ("E2EL", "end-to-end latency: last byte − sent"),
    ("p50 p90 p99", "percentiles over the sliding window, within 1 % of the exact values (which the summary has)"),
    (
        "stages (3, 4)",
        "what whole ticks of 250 ms counted while a stage ran, whichever stage its requests are of; a tick that two "
        "stages share counts for the earlier; the summary, and the matrix of a sweep that has ended, have each stage's "
        "own requests",
    ),
    (
        "KV blocks",
        "the engine's paged memory for running requests; when it is full, the engine preempts; a map of "
        "them shows how many are in use, not which",
    ),
    ("preemptions", "requests removed from the running batch, to be recomputed later"),
    (
        "slip",
        f"sent − due; limit {LATENESS_SHARE:.0%} of TTFT p99, at least {formats.seconds(TURNAROUND)}; above "
        f"{formats.seconds(SLIP_LIMIT)} at p99 the client is the bottleneck",
    ),
    ("loop lag", "lateness of the client's own timer; limits as for slip"),
    ("sent / offered", f"below {SENT_SHARE_LIMIT:.0%} the offered load was not delivered"),
    (
        "Little's law",
        f"engine running + waiting against client in flight; within {AGREEMENT_LIMIT:.0%} or 1.5 requests",
    ),
    ("tokens", f"the engine's count against the client's; within {AGREEMENT_LIMIT:.0%}"),
    ("cursor", "every panel shows its values at the cursor's time; windows end there; charts do not move"),
    (
        "engine page (7)",
        "rates, ratios and histograms over the last 10 s, gauges as of the last scrape; pairs are p50 / p90, as exact "
        "as the engine's buckets; tokens per step: 1 + accepted ÷ drafts; bars are scaled to their largest value",
    ),
    (
        "requests",
        "╌ queued: due → sent  ░ to first token  █ decode  ╍ stall  ▚ stall while the engine preempted  "
        "┄ engine queue  ▒ prefill; in a live run, requests in flight are as of a second ago, "
        "and can be opened when they end",
    ),
    (
        "batch film",
        "a row is a slot of the running batch: a request takes the lowest free one from its admission to its end; a "
        "preempted request keeps its slot; · is a running request without a record",
    ),
    (
        "What happened",
        "the story of a run that has ended: its cause, what followed, and what to try; ↑ ↓ select a line, Enter or a "
        "click goes to its time, End returns, esc closes it",
    ),
    (
        "timeline",
        "┿ stage  ═ steady state  ▬ episode: the time while one thing was wrong, such as a full KV cache  ● command  "
        "◆ mark  • note  ▲ warning  ✖ error or stall  "
        "◇ knee (Kneedle, over the stages' TTFT p90)",
    ),
)


class HelpScreen(Modal[None]):
    """Closed by Escape, `?` or q."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,question_mark,q,f1", "dismiss", "close")]

    def __init__(self, tables: Mapping[str, Sequence[Key]]) -> None:
        """`tables`: the keys that have an effect, by what they act on."""
        super().__init__()
        self._tables = tables

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="dialog help") as box:
            box.border_title = "servetop: keys and definitions"
            box.border_subtitle = "↑ ↓ scroll · esc closes"
            yield HelpText(self._tables)


class HelpText(Widget):
    """The height of its text at its width."""

    COMPONENT_CLASSES: ClassVar[set[str]] = set(STYLES)

    def __init__(self, tables: Mapping[str, Sequence[Key]]) -> None:
        super().__init__()
        self._tables = tables

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002
        return len(help_rows(width, self._tables))

    def render(self) -> Lines:
        return Lines(help_rows(self.size.width, self._tables))


def help_rows(width: int, tables: Mapping[str, Sequence[Key]]) -> list[TextRow]:
    """Keys by what they act on, then definitions, each wrapped and indented."""
    rows: list[TextRow] = []
    for heading, keys in tables.items():
        rows.append([(heading, "title")])
        rows += [row for key in keys for row in _entry(key.caption, key.tooltip, "key", width)]
        rows.append([])
    rows.append([("Definitions", "title")])
    return rows + [row for name, meaning in DEFINITIONS for row in _entry(name, meaning, "strong", width)]


def _entry(name: str, meaning: str, style: str, width: int) -> list[TextRow]:
    first, *rest = textwrap.wrap(meaning, max(width - _INDENT, 20))
    return [[(f"  {name:<{_INDENT - 2}}", style), (first, "")], *([(" " * _INDENT + line, "")] for line in rest)]
