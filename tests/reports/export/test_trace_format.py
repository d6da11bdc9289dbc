"""A trace keeps the rules of the Trace Event Format by which Perfetto's trace processor reads it.

The trace processor is a binary that its Python package downloads (docs/decisions/032-traces-are-checked-by-rule.md),
so the rules are checked here: fields and types of each kind of event, names of tracks, and slices that nest.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from servetop.core.events import RequestRecord, RunEnd
from servetop.core.interfaces.run_source import RunHeader
from servetop.recordings.library.catalog import resolve
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.tick_transaction import TickTransaction
from servetop.reports.export.trace_events import trace_text
from tests.hostile_recording import write_hostile_recording

Event = Mapping[str, Any]
FIELDS: Mapping[str, Mapping[str, type]] = {
    "X": {"name": str, "pid": int, "tid": int, "ts": int, "dur": int, "args": dict},
    "C": {"name": str, "pid": int, "ts": int, "args": dict},
    "i": {"name": str, "pid": int, "tid": int, "ts": int, "s": str, "args": dict},
    "M": {"name": str, "pid": int, "args": dict},
}
"""The fields of an event and their types, by its phase; metadata of a thread have its `tid` too."""
METADATA = {"process_name": ("name", str), "thread_name": ("name", str), "process_sort_index": ("sort_index", int)}


def faults(text: str) -> Iterator[str]:
    """Yield what keeps a reader of the format from showing the trace as it is meant."""
    trace = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    if set(trace) != {"displayTimeUnit", "otherData", "traceEvents"} or trace["displayTimeUnit"] not in ("ms", "ns"):
        yield f"top level {sorted(trace)}"
    events = trace["traceEvents"]
    named = {(each["name"], each["pid"], each.get("tid")) for each in events if each["ph"] == "M"}
    for each in events:
        yield from _field_faults(each)
        if ("process_name", each["pid"], None) not in named:
            yield f"process {each['pid']} has no name"
        if each["ph"] in ("X", "i") and ("thread_name", each["pid"], each["tid"]) not in named:
            yield f"thread {each['tid']} of process {each['pid']} has no name"
    yield from _overlaps(events)


def _field_faults(event: Event) -> Iterator[str]:
    fields = dict(FIELDS[event["ph"]])
    if event["name"] == "thread_name" and event["ph"] == "M":
        fields["tid"] = int
    if set(event) != {"ph", *fields} or any(type(event[name]) is not kind for name, kind in fields.items()):
        yield f"fields of {event}"
    if event["ph"] == "M":
        name, kind = METADATA[event["name"]]
        if set(event["args"]) != {name} or type(event["args"][name]) is not kind:
            yield f"arguments of {event}"
    if event["ph"] == "C" and not all(
        type(each) in (int, float) and math.isfinite(each) for each in event["args"].values()
    ):
        yield f"counter {event}"
    if event["ph"] == "C" and not event["args"]:
        yield f"empty counter {event}"
    if event["ph"] == "i" and event["s"] not in ("g", "p", "t"):
        yield f"scope of {event}"


def _overlaps(events: list[Event]) -> Iterator[str]:
    """Yield slices of a track that begin within another one and end after it: the trace processor drops those."""
    tracks: dict[tuple[int, int], list[Event]] = defaultdict(list)
    for each in events:
        if each["ph"] == "X":
            tracks[each["pid"], each["tid"]].append(each)
    for slices in tracks.values():
        open_until: list[int] = []
        for each in sorted(slices, key=lambda each: (each["ts"], -each["dur"])):
            while open_until and open_until[-1] <= each["ts"]:
                open_until.pop()
            end = each["ts"] + each["dur"]
            if each["dur"] < 0 or (open_until and end > open_until[-1]):
                yield f"overlap of {each}"
            open_until.append(end)


def trace_of(path: Path) -> str:
    with contextlib.closing(RecordingReader.open(path)) as reader:
        return "".join(trace_text(reader))


@pytest.mark.parametrize("name", ["sample", "sample:h200"])
def test_the_trace_of_a_sample_keeps_the_rules(name: str) -> None:
    assert list(faults(trace_of(resolve(name)))) == []


def test_the_trace_of_a_hostile_recording_keeps_the_rules(tmp_path: Path) -> None:
    write_hostile_recording(tmp_path / "run.servetop", '"},{"ph":"X","name":"owned"},{"a":"')
    text = trace_of(tmp_path / "run.servetop")
    assert list(faults(text)) == []
    assert not [each for each in json.loads(text)["traceEvents"] if each["name"] == "owned"]


def test_parts_that_a_server_reports_nest_whatever_they_add_up_to(
    tmp_path: Path, header: RunHeader, make_request: Callable[..., RequestRecord]
) -> None:
    recorder = Recorder.create(tmp_path / "run.servetop", header)
    whole = make_request(0, 0.5, slip=0.25)
    requests = [
        replace(whole, id=10 * queue + prefill, due=0.5 + 10 * queue + prefill, sent=0.75 + 10 * queue + prefill,
                first_token_at=0.85 + 10 * queue + prefill, done_at=0.95 + 10 * queue + prefill,
                server_queue=queue / 40, server_prefill=prefill / 40)
        for queue in range(6) for prefill in range(6)
    ]  # fmt: skip
    unsent = replace(whole, id=99, due=80.0, sent=None, headers_at=None, first_token_at=None, done_at=None)
    recorder.commit(TickTransaction(requests=[*requests, unsent]))
    recorder.close(RunEnd(at=90.0, exit_code=0, reason=""))
    text = trace_of(recorder.path)
    assert list(faults(text)) == []
    names = [each["name"] for each in json.loads(text)["traceEvents"] if each["ph"] == "X"]
    assert {"request 0", "client queue", "network", "queue", "prefill", "decode", "request 99"} <= set(names)


@pytest.mark.parametrize(
    "change",
    [
        lambda event: event | {"dur": -1},
        lambda event: event | {"dur": event["dur"] + 10**9},
        lambda event: event | {"ts": float(event["ts"])},
        lambda event: event | {"tid": 10_000},
        lambda event: {key: value for key, value in event.items() if key != "args"},
    ],
)
def test_a_broken_trace_is_found(change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    trace = json.loads(trace_of(resolve("sample")))
    place = next(number for number, each in enumerate(trace["traceEvents"]) if each["name"] == "decode")
    trace["traceEvents"][place] = change(trace["traceEvents"][place])
    assert list(faults(json.dumps(trace)))
