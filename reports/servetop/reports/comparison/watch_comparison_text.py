"""The comparison of watches on the terminal, and as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rich.console import Group

from servetop.analysis.comparison.watch_comparison import ComparedServer, ComparedWatch, WatchComparison
from servetop.core.text import formats
from servetop.reports.markdown import escaped, table
from servetop.reports.summary.watch_rows import bucket_text, error_rate_text
from servetop.reports.tables import cell, light_table, titled

_Format = Callable[[float | None], str]


def _share(value: float | None) -> str:
    return formats.percent(value, zeros="always")


def _time(value: float | None) -> str:
    return formats.UNKNOWN if value is None else formats.clock(value)


_NAMES = {"ttft": "TTFT", "tpot": "TPOT", "itl": "ITL", "e2el": "E2EL", "queue": "in the queue"}
_LATENCY_ROWS: dict[str, tuple[str, _Format]] = {
    f"{of}_{key}_ms": (f"{name} {of}, ms", formats.in_full)
    for key, name in _NAMES.items()
    for of in ("mean", "p50", "p90")
}
ROWS: dict[str, tuple[str, _Format]] = {
    "seconds": ("watched", _time),
    "request_throughput": ("requests/s", formats.number),
    "output_throughput": ("output tokens/s", formats.number),
    "prompt_throughput": ("prompt tokens/s", formats.number),
    "error_rate": ("error rate", error_rate_text),
    **_LATENCY_ROWS,
    "max_running": ("peak running", formats.exact),
    "max_waiting": ("peak waiting", formats.exact),
    "max_kv_usage": ("peak KV usage", _share),
    "preemptions_per_s": ("preemptions/s", formats.number),
    "prefix_cache_hit_rate": ("prefix cache hits", _share),
    "kv_bound_share": ("KV-bound, of the time", _share),
    "batch_bound_share": ("batch-bound, of the time", _share),
    "requests_wait_share": ("requests wait, of the time", _share),
    "failing_share": ("failing, of the time", _share),
}
"""Name and format of each figure, by key."""
_WITHOUT_CHANGE = ("seconds", "kv_bound_share", "batch_bound_share", "requests_wait_share", "failing_share")
"""Figures without a relative change: times and shares of it."""


def watch_parts(found: WatchComparison) -> Iterator[Group]:
    """Yield what was watched, then a table for all servers and for each."""
    letters = [each.letter for each in found.watches]
    watches = light_table(*WATCH_COLUMNS)
    for each in found.watches:
        watches.add_row(*(cell(text) for text in watch_row(each)))
    for place in range(5):
        watches.columns[place].justify = "left"
    yield titled("Watches", watches)
    for server in found.servers:
        body = light_table("", *letters, *change_title(found))
        for row in server_rows(server):
            body.add_row(*row)
        yield titled(str(cell(server_title(server, found))), body)


def watch_markdown(found: WatchComparison) -> list[str]:
    """Return the same as Markdown, for a pull request."""
    *unknown, last = (f"{text[0].upper()}{text[1:]}." for text in remarks(found))
    lines = [f"**{escaped(last)}**", "", *(f"- {escaped(text)}" for text in unknown), *([""] if unknown else [])]
    lines += table(
        WATCH_COLUMNS,
        [[escaped(text) for text in watch_row(each)] for each in found.watches],
    )
    columns = ["", *(each.letter for each in found.watches), *change_title(found)]
    for server in found.servers:
        rows = [[escaped(text) for text in row] for row in server_rows(server)]
        lines += [
            "",
            f"#### {escaped(server_title(server, found))}",
            "",
            *table(columns, rows, align=[":--", *["--:"] * (len(columns) - 1)]),
        ]
    return lines


def remarks(found: WatchComparison) -> Iterator[str]:
    """Yield what is not known of which watch, then what holds for all of them."""
    for each in found.watches:
        if each.error_rate_reason is not None:
            yield f"error rate of {each.letter} not known: {each.error_rate_reason}"
    yield found.remark


WATCH_COLUMNS = ("", "recording", "began", "watched", "verdict")


def watch_row(watch: ComparedWatch) -> list[str]:
    """Return letter, recording, start, servers with their engine, and verdict."""
    engine = " ".join(filter(None, (watch.backend, watch.version, "·", watch.model_id)))
    servers = f"{watch.servers} × {engine}" if watch.servers > 1 else engine
    return [watch.letter, watch.recording, watch.date, servers, watch.headline]


def server_title(server: ComparedServer, found: WatchComparison) -> str:
    """Return the name of the server, or what the figures of all together are called."""
    return server.name or ("All servers" if len(found.servers) > 1 else "The server")


def change_title(found: WatchComparison) -> list[str]:
    """Return the title of the last column of two watches; more have no such column."""
    return ["change"] if len(found.watches) == 2 else []


def server_rows(server: ComparedServer) -> Iterator[list[str]]:
    """Yield name and values of the figures that at least one watch has, with the change if there are two."""
    for key, (name, text) in ROWS.items():
        values = server.figures[key]
        if key not in server.at_least and all(value is None for value in values):
            continue
        change = [] if len(values) != 2 else [formats.UNKNOWN]
        if change and key not in _WITHOUT_CHANGE:
            change = [formats.signed_percent(server.change(key))]
        yield [name, *(_text(server, key, watch, text) for watch in range(len(values))), *change]


def _text(server: ComparedServer, key: str, watch: int, text: _Format) -> str:
    """Return a figure, or the bounds that are all that is known of it."""
    low = server.at_least.get(key, ())[watch : watch + 1]
    if low and low[0] is not None:
        return bucket_text((low[0], server.at_most[key][watch]))
    return text(server.figures[key][watch])
