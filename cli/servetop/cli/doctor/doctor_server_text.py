"""The report of `servetop doctor URL` as text: the details of each endpoint, then a summary on one screen."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from servetop.core.text import formats
from servetop.core.text.sanitize import sanitize_line
from servetop.core.text.shorten import cut_short
from servetop.reports.tables import cell, light_table, titled

Data = Mapping[str, Any]
FIRST_EVENTS, LAST_EVENTS = 4, 3
"""Events of a response that are shown, at its beginning and at its end."""
_TEXT_CHARS = 40
_BODY_CHARS = 400
_ABSENT = (404, 405)
"""HTTP statuses of a server that does not have an endpoint."""
_COUNTED_BY = {
    "usage": "counted by the server",
    "disputed": "counted by the server, but not by its events",
    "chunks": "counted by events",
    "estimate": "counted by events, the prompt estimated",
}
_GOOD, _BAD, _LABEL = "green", "red", "dim"


def report_parts(report: Data) -> Iterator[RenderableType]:
    """Yield the parts of the report in order; the summary is last, where a terminal shows it."""
    for each in report["endpoints"]:
        yield titled(f"{_name(each)}: POST {each['url']}", _details(each))
    yield titled(f"Server {report['url']}", _verdict(report))
    yield Padding(_endpoints(report["endpoints"]), (1, 0, 0, 2))
    yield Padding(_facts(report), (1, 0, 0, 2))


def _name(check: Data) -> str:
    return f"{check['endpoint']} with {check['prompt']}" if check["endpoint"] == "completions" else check["endpoint"]


def _details(check: Data) -> Table:
    rows = _rows()
    rows.add_row(_label("sent"), cell(json.dumps(check["sent"], ensure_ascii=False)))
    rows.add_row(_label("headers"), cell(", ".join(check["header_names"])))
    for refusal, change in zip(check["refusals"], check["changes"], strict=False):
        rows.add_row(_label("refused"), cell(f"{refusal} → sent {change}"))
    rows.add_row(_label("received"), cell(_received(check)))
    if not check["answered"]:
        rows.add_row(_label("read as"), Text(sanitize_line(f"{check['status']}: {check['error']}"), style=_BAD))
        rows.add_row(_label("body"), cell(_excerpt(check["body"])))
    for at, event in _shown_events(check["events"]):
        rows.add_row(_label(at), cell(event))
    return rows


def _received(check: Data) -> str:
    if check["http_status"] is None:
        return "nothing"
    parts = [f"HTTP {check['http_status']}", check["media_type"] or "no content type"]
    if check["output_tokens"]:
        counted = _COUNTED_BY.get(check["token_source"], check["token_source"])
        parts.append(f"{check['prompt_tokens']} prompt and {check['output_tokens']} output tokens, {counted}")
    return ", ".join(parts)


def _shown_events(events: Sequence[Data]) -> Iterator[tuple[str, str]]:
    hidden = len(events) - FIRST_EVENTS - LAST_EVENTS
    for number, event in enumerate(events):
        if hidden > 1 and FIRST_EVENTS <= number < FIRST_EVENTS + hidden:
            if number == FIRST_EVENTS:
                yield "", f"… {hidden} more"
            continue
        yield formats.seconds(event["at"]), _event(event)


def _event(event: Data) -> str:
    parts = []
    if event["tokens"] or event["text"]:
        kind = "reasoning " if event["reasoning"] else ""
        parts.append(f"{kind}{_quoted(event['text'])}, {_count(event['tokens'], 'token')}")
    if event["output_tokens"] is not None:
        parts.append(f"server's count {event['output_tokens']}")
    parts += ["end of the stream"] if event["final"] else []
    parts += [f"error: {event['error']}"] if event["error"] else []
    return ", ".join(parts) or "finish reason"


def _verdict(report: Data) -> Text:
    engine = f"{report['title']} {report['version'] or ''}".strip()
    model = f", model {report['model']}" if report["model"] else ""
    words = "works" if report["answered"] else "does not answer: no endpoint completed a request"
    mark, style = ("✓", _GOOD) if report["answered"] else ("✗", _BAD)
    return Text(sanitize_line(f"{mark} {words}: {engine}{model}"), style=style)


def _endpoints(checks: Sequence[Data]) -> Table:
    table = light_table("endpoint", "prompt", "result", "tokens", "first", "total", "note")
    for column in (0, 1, 2, 6):
        table.columns[column].justify = "left"
    table.columns[6].no_wrap = False
    for each in checks:
        answered = each["answered"]
        absent = each["http_status"] in _ABSENT
        mark = Text("ok", style=_GOOD) if answered else Text("absent") if absent else Text("failed", style=_BAD)
        times = [each["first_token_seconds"], each["total_seconds"]] if answered else [None, None]
        tokens = str(each["output_tokens"]) if answered else ""
        note = ", ".join(each["changes"]) if answered else each["error"] or each["status"]
        cells = ["" if time is None else formats.seconds(time) for time in times]
        table.add_row(cell(each["endpoint"]), cell(each["prompt"]), mark, tokens, *map(cell, cells), cell(note))
    return table


def _facts(report: Data) -> Table:
    rows = _rows()
    for label, text in _metrics(report["metrics"]):
        rows.add_row(_label(label), cell(text))
    for each in report["remarks"]:
        rows.add_row(_label("note"), cell(each))
    return rows


def _metrics(metrics: Data) -> Iterator[tuple[str, str]]:
    panels = metrics["panels"]
    if not panels:
        where = f" at {metrics['page']}" if metrics["page"] else ""
        yield "metrics", metrics["trouble"] or f"none{where}"
        return
    yield "metrics", metrics["page"]
    whole = [each["panel"] for each in panels if not each["missing"]]
    partly = [
        f"{each['panel']} (no {', '.join(each['missing'])})" for each in panels if each["found"] and each["missing"]
    ]
    absent = [each["panel"] for each in panels if not each["found"]]
    for label, names in (("found", whole), ("partly", partly), ("absent", absent)):
        if names:
            yield label, ", ".join(names)


def _rows() -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    return table


def _label(text: str) -> Text:
    return Text(text, style=_LABEL)


def _quoted(text: str) -> str:
    return json.dumps(cut_short(text, _TEXT_CHARS), ensure_ascii=False)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


def _excerpt(body: str) -> str:
    return cut_short(" ".join(body.split()), _BODY_CHARS) or "empty"
