"""A recording as trace events (JSON), which Perfetto and chrome://tracing draw on one time line.

Requests are slices in lanes, each with what it waited for and its decode as slices below; client, engine and GPU are
counters; stages, episodes and notes have tracks of their own. Instants are microseconds since the start of the run.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from servetop.analysis.diagnosis.run_record import RunRecord
from servetop.core.events import EngineSample, GpuSample
from servetop.core.tick import TICK_SECONDS, Tick
from servetop.recordings.format.schema import ENGINE_SAMPLE, TICK
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.export.request_lanes import request_lanes
from servetop.reports.export.row_formats import json_line
from servetop.reports.summary.recorded_run import recorded_run

MOST_LANES = 1024
"""Requests in flight at once that are drawn; more lanes fit on no screen."""
NOT_CARRIED = (
    "times of each chunk",
    "texts",
    f"requests beyond {MOST_LANES:,} at once (`otherData.requests_left_out`)",
    "histograms",
)
RUN, REQUESTS, CLIENT, ENGINE, GPUS = range(1, 6)
"""Process ids of the tracks, in their order on the screen; each GPU has one from GPUS on."""
_PROCESSES = {RUN: "run", REQUESTS: "requests", CLIENT: "client", ENGINE: "engine"}
_STAGES, _NOTES, _EPISODES = 1, 2, 3
"""Threads of the run; each kind of episode has one from _EPISODES on."""
_BLOCK = 500
_TIMES = ("due", "sent", "first_token_at", "done_at", "server_queue", "server_prefill")
_ARGUMENTS = ("status", "prompt_tokens", "output_tokens", "stage", "error")
_COLUMNS = ("seq", "id", *_TIMES, *_ARGUMENTS)
Event = Mapping[str, Any]


def trace_text(reader: RecordingReader) -> Iterator[str]:
    """Yield the JSON of a trace, in blocks of events; requests are read while it is written."""
    lanes = _lanes(reader)
    head = {
        "recording": reader.name,
        "start": reader.header.anchor.wall_epoch_s,
        "requests_left_out": sum(lane < 0 for lane in lanes.values()),
    }
    yield f'{{"displayTimeUnit":"ms","otherData":{json_line(head)},"traceEvents":[\n'
    record = recorded_run(reader)
    lead, block = "", []
    for line in itertools.chain(map(_line, _events(reader, record, lanes)), _request_lines(reader, lanes)):
        block.append(line)
        if len(block) == _BLOCK:
            yield lead + ",\n".join(block)
            lead, block = ",\n", []
    yield (lead if block else "") + ",\n".join(block) + "\n]}\n"


def _events(reader: RecordingReader, record: RunRecord, lanes: Mapping[int, int]) -> Iterator[Event]:
    gpus = reader.gpu_samples()
    names = _PROCESSES | {GPUS + each: f"GPU {each}" for each in sorted({gpu.index for gpu in gpus})}
    for pid, name in names.items():
        yield {"ph": "M", "pid": pid, "name": "process_name", "args": {"name": name}}
        yield {"ph": "M", "pid": pid, "name": "process_sort_index", "args": {"sort_index": pid}}
    yield from _run_events(record)
    for tick in reader.stream(TICK):
        yield from _tick_counters(tick)
    for sample in reader.stream(ENGINE_SAMPLE):
        yield from _engine_counters(sample)
    for gpu in gpus:
        yield from _gpu_counters(gpu)
    for lane in range(max(lanes.values(), default=-1) + 1):
        yield _thread(REQUESTS, lane + 1, f"lane {lane}")


def _line(event: Event) -> str:
    return json_line(event)[:-1]


def _lanes(reader: RecordingReader) -> dict[int, int]:
    """Return the lane of each request by its `seq`."""
    rows = list(reader.request_rows(("seq", "due", "sent", "first_token_at", "done_at")))
    if not rows:
        return {}
    table = np.array(rows, dtype=np.float64)
    lanes = request_lanes(table[:, 1], np.nanmax(table[:, 1:], axis=1), most=MOST_LANES)
    return dict(zip(table[:, 0].astype(np.int64).tolist(), lanes.tolist(), strict=True))


def _request_lines(reader: RecordingReader, lanes: Mapping[int, int]) -> Iterator[str]:
    """Yield the slices of the requests as JSON: they are most of a trace, so their text is put together here."""
    for seq, number, *row in reader.request_rows(_COLUMNS):
        if (lane := lanes.get(seq, -1)) < 0:
            continue
        times, values = row[: len(_TIMES)], row[len(_TIMES) :]
        due, sent, first, done = times[:4]
        args = {name: value for name, value in zip(_ARGUMENTS, values, strict=True) if value not in (None, "")}
        if first is not None and sent is not None:
            args["ttft_ms"] = round(1000 * (first - sent), 3)
        end = next(each for each in (done, first, sent, due) if each is not None)
        start, stop = _us(due), _us(end)
        lead = f'{{"ph":"X","pid":{REQUESTS},"tid":{lane + 1},"name":'
        name = json_line(f"request {number}")[:-1]
        yield f'{lead}{name},"ts":{start},"dur":{stop - start},"args":{_line(args)}}}'
        for (part, begin), (_, until) in pairwise([*_parts(times), ("", stop)]):
            if until > begin:
                yield f'{lead}"{part}","ts":{begin},"dur":{until - begin},"args":{{}}}}'


def _parts(times: Sequence[Any]) -> list[tuple[str, int]]:
    """Return name and start, in microseconds, of what follows one another in a request; none if it was not sent."""
    due, sent, first, _, queue, prefill = times
    if sent is None:
        return []
    if first is None:
        return [("client queue", _us(due)), ("waiting", _us(sent))]
    if queue is None or prefill is None:
        return [("client queue", _us(due)), ("to first token", _us(sent)), ("decode", _us(first))]
    begins = max(sent, first - prefill)
    queued = max(sent, begins - queue)
    edges = {"client queue": due, "network": sent, "queue": queued, "prefill": begins, "decode": first}
    return [(name, _us(at)) for name, at in edges.items()]


def _run_events(record: RunRecord) -> Iterator[Event]:
    yield _thread(RUN, _STAGES, "stages")
    edges = [*(stage.at for stage in record.stages), record.until][1:]
    for stage, end in zip(record.stages, edges, strict=True):
        if end > stage.at:
            yield _slice(RUN, _STAGES, stage.label or f"stage {stage.index}", stage.at, end)
    yield _thread(RUN, _NOTES, "notes")
    for note in record.notes:
        args = {"severity": str(note.severity), "source": note.source}
        yield _instant(RUN, _NOTES, note.text, note.at, args=args)
    kinds = dict.fromkeys(each.kind for each in record.episodes)
    for tid, kind in enumerate(kinds, start=_EPISODES):
        yield _thread(RUN, tid, kind.value)
        for each in record.episodes:
            if each.kind is kind:
                end = record.until if each.end is None else each.end
                yield _slice(RUN, tid, each.text or kind.value, each.begin, end, args={"worst": each.worst})


def _tick_counters(tick: Tick) -> Iterator[Event]:
    client, gauges = tick.client, tick.client.gauges
    per_second = {"sent": client.sent, "completed": client.ok, "failed": client.failed}
    rates = {name: each / TICK_SECONDS for name, each in per_second.items()}
    if gauges.request_rate is not None and math.isfinite(gauges.request_rate):
        rates["target"] = gauges.request_rate
    yield _counter(CLIENT, "requests/s", tick.start, rates)
    yield _counter(CLIENT, "output tokens/s", tick.start, {"tokens": client.output_tokens / TICK_SECONDS})
    yield _counter(CLIENT, "requests", tick.end, {"in flight": gauges.in_flight, "queued": gauges.queued})


def _engine_counters(sample: EngineSample) -> Iterator[Event]:
    at = sample.scrape_end
    yield from _known(ENGINE, "requests", at, {"running": sample.running, "waiting": sample.waiting})
    usage = None if sample.kv_usage is None else 100 * sample.kv_usage
    yield from _known(ENGINE, "KV blocks used, %", at, {"used": usage})
    yield from _known(ENGINE, "preemptions", at, {"total": sample.preemptions_total})
    yield from _known(ENGINE, "generated tokens", at, {"total": sample.generation_tokens_total})


def _gpu_counters(gpu: GpuSample) -> Iterator[Event]:
    pid = GPUS + gpu.index
    utilisation = None if gpu.utilisation is None else 100 * gpu.utilisation
    yield from _known(pid, "utilisation, %", gpu.at, {"busy": utilisation})
    yield from _known(pid, "power, W", gpu.at, {"power": gpu.power})
    yield from _known(pid, "memory, bytes", gpu.at, {"used": gpu.memory_used})


def _known(pid: int, name: str, at: float, values: Mapping[str, float | None]) -> Iterable[Event]:
    """Return a counter of the values that are known; none without any."""
    known = {key: value for key, value in values.items() if value is not None and math.isfinite(value)}
    return [_counter(pid, name, at, known)] if known else []


def _counter(pid: int, name: str, at: float, values: Mapping[str, float]) -> Event:
    return {"ph": "C", "pid": pid, "name": name, "ts": _us(at), "args": values}


def _slice(pid: int, tid: int, name: str, begin: float, end: float, *, args: Mapping[str, Any] | None = None) -> Event:
    start = _us(begin)
    return {"ph": "X", "pid": pid, "tid": tid, "name": name, "ts": start, "dur": _us(end) - start, "args": args or {}}


def _instant(pid: int, tid: int, name: str, at: float, *, args: Mapping[str, Any]) -> Event:
    return {"ph": "i", "s": "p", "pid": pid, "tid": tid, "name": name, "ts": _us(at), "args": args}


def _thread(pid: int, tid: int, name: str) -> Event:
    return {"ph": "M", "pid": pid, "tid": tid, "name": "thread_name", "args": {"name": name}}


def _us(seconds: float) -> int:
    """Return microseconds, whole as the times of a recording are."""
    return round(seconds * 1e6)
