"""Reads `profile_export.json` of GenAI-Perf (Perf Analyzer), whose experiments have the stamps of each response.

As GenAI-Perf defines them, a request ends with its last response with content, and the first token is the first one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from servetop.core.errors import UsageError
from servetop.core.events import RequestRecord, RequestStatus, TokenSource
from servetop.core.text.counted import counted
from servetop.core.units import NS_PER_S
from servetop.recordings.format.request_codec import last_known_at
from servetop.run.imports.genai_perf_responses import responses_of
from servetop.run.imports.imported_result import ImportedLoad, ImportedResult
from servetop.run.imports.loop_kind import is_open_loop
from servetop.run.imports.number_lists import count_in, seconds_in
from servetop.run.imports.reported_figures import aiperf_figures

TOOL = "GenAI-Perf"
_LARGEST_SUMMARY = 16 * 2**20
_LATEST = 2**63 - 1
_UNIX_TIME = 10**18
"""A smaller stamp, in nanoseconds, is of a clock that does not show Unix time."""
_SAME_COUNT = 0.005
"""Relative difference up to which GenAI-Perf's mean of the output tokens is that of the chunks."""


def is_genai_perf_export(document: Any) -> bool:
    """Whether a JSON value is a profile export, or the statistics that GenAI-Perf writes beside it."""
    if not isinstance(document, Mapping) or "aiperf_version" in document or "schema_version" in document:
        return False
    if "experiments" in document:
        return "service_kind" in document
    return "input_config" in document and isinstance(document.get("request_latency"), Mapping)


def read_genai_perf_export(document: Any, path: Path) -> list[ImportedResult]:
    """Return a run for each experiment; UsageError for statistics without requests, or if values make no sense."""
    experiments = document.get("experiments")
    if experiments is None:
        raise UsageError("it has statistics but no requests: give the profile_export.json beside it")
    if not isinstance(experiments, list) or not all(isinstance(each, Mapping) for each in experiments):
        raise UsageError("its experiments are not a list of objects: is the file damaged?")
    if not any(each.get("requests") for each in experiments):
        raise UsageError("its experiments have no requests")
    statistics = _statistics(path) if len(experiments) == 1 else {}
    return [_run(document, each, statistics) for each in experiments if each.get("requests")]


def _run(document: Mapping[str, Any], experiment: Mapping[str, Any], statistics: Mapping[str, Any]) -> ImportedResult:
    rows = experiment["requests"]
    if not isinstance(rows, list) or not all(isinstance(each, Mapping) for each in rows):
        raise UsageError("its requests are not a list of objects: is the file damaged?")
    kind = _text(document.get("service_kind"))
    found = [_Request(row, kind, f"of request {number}") for number, row in enumerate(rows, start=1)]
    if not any(each.responses for each in found):
        raise UsageError("none of its responses has text or tokens: files of embeddings and rankings are not imported")
    found.sort(key=lambda each: each.sent)
    origin = found[0].sent
    requests = [each.record(number, origin) for number, each in enumerate(found)]
    seconds_in([*map(last_known_at, requests)], "the end")
    endpoint, level = _text(document.get("endpoint")), _table(experiment, "experiment")
    version = _text(document.get("version"))
    return ImportedResult(
        tool=TOOL,
        requests=requests,
        load=_load(level, requests),
        backend=endpoint if kind == "openai" and "chat" not in endpoint and endpoint else kind or "unknown",
        model=next(filter(None, (each.model for each in found)), "") or _model(statistics),
        label=" ".join(str(level[key])[:80] for key in ("mode", "value") if key in level),
        endpoint="chat" if "chat" in endpoint else "completions",
        origin_ns=origin,
        wall_epoch_s=origin / NS_PER_S if origin >= _UNIX_TIME else None,
        metadata={"perf_analyzer_version": version} if version else {},
        reported=aiperf_figures(statistics),
        not_carried=[f"{what} ({count:,})" for what, count in _left_out(found).items()],
        remarks=[*_remarks(found, requests, statistics)],
    )


class _Request:
    """One request of an experiment; its stamps are nanoseconds of one clock."""

    def __init__(self, row: Mapping[str, Any], kind: str, what: str) -> None:
        self._what = what
        self.inputs = _table(row, "request_inputs")
        self.payload = _payload(self.inputs)
        self.sent = _stamp(row.get("timestamp"), f"timestamp {what}")
        stamps, outputs = row.get("response_timestamps"), row.get("response_outputs", [])
        if not isinstance(stamps, list) or not isinstance(outputs, list) or len(stamps) != len(outputs):
            raise UsageError(f"response_timestamps and response_outputs {what} are not two lists of one length")
        times = [_stamp(each, f"response_timestamps {what}") for each in stamps]
        if times != sorted(times) or (times and times[0] < self.sent):
            raise UsageError(f"response_timestamps {what} are not in order: is the file damaged?")
        every = list(responses_of(times, outputs, kind, what))
        self.error = next((each.error for each in every if each.error), None)
        self.responses = [each for each in every if each.tokens]
        until = self.responses if kind == "openai" and self.responses else every
        self.last = until[-1].stamp if until else None
        self.first_is_empty = bool(every) and not every[0].error and not every[0].tokens
        self.usage = next((each.usage for each in reversed(every) if each.usage), {})

    @property
    def model(self) -> str:
        """The model that the request names; empty without one."""
        return _text(self.payload.get("model"))

    @property
    def is_ok(self) -> bool:
        """Whether the request has a response with content, and none with an error."""
        return bool(self.responses) and self.error is None

    def record(self, number: int, origin: int) -> RequestRecord:
        """Return the request as servetop records it, with seconds since `origin`."""
        sent = (self.sent - origin) / NS_PER_S
        chunks = np.array([(each.stamp - origin) / NS_PER_S for each in self.responses], dtype=np.float64)
        tokens = np.array([each.tokens for each in self.responses], dtype=np.int64)
        counted_tokens = count_in(self.usage.get("completion_tokens") or 0, f"completion_tokens {self._what}")
        return RequestRecord(
            id=number,
            stage=0,
            due=sent,
            sent=sent,
            first_token_at=float(chunks[0]) if chunks.size else None,
            done_at=None if self.last is None else (self.last - origin) / NS_PER_S,
            prompt_tokens=self._prompt_tokens(),
            output_tokens=counted_tokens if counted_tokens and self.is_ok else int(tokens.sum()),
            status=RequestStatus.OK if self.is_ok else RequestStatus.ERROR,
            error=None if self.is_ok else self.error or "its responses have no content",
            token_source=TokenSource.USAGE if counted_tokens else TokenSource.CHUNKS,
            chunk_times=chunks,
            chunk_tokens=tokens,
        )

    def _prompt_tokens(self) -> int:
        ids = self.inputs.get("input_ids")
        known = len(ids) if isinstance(ids, list) else self.usage.get("prompt_tokens") or 0
        return count_in(known, f"prompt_tokens {self._what}")


def _load(level: Mapping[str, Any], requests: Sequence[RequestRecord]) -> ImportedLoad:
    """Return the load of the experiment; of another mode than a rate or a concurrency by the times of its requests."""
    mode, value = level.get("mode"), level.get("value")
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf:
        if mode == "request_rate":
            return ImportedLoad(request_rate=float(value))
        if mode == "concurrency" and value >= 1:
            return ImportedLoad(max_concurrency=int(value))
    return ImportedLoad(scheduled=is_open_loop(requests))


def _remarks(
    found: Sequence[_Request], requests: Sequence[RequestRecord], statistics: Mapping[str, Any]
) -> Iterator[str]:
    """Yield what the file leaves open, and where figures are not GenAI-Perf's."""
    yield "the file has no times at which requests were due: each counts as due when it was sent"
    if not any(each.prompt_tokens for each in requests):
        yield "the file has no lengths of prompts in tokens: prompt tokens are unknown"
    published = _table(statistics, "output_sequence_length").get("avg")
    ok = [each.output_tokens for each in requests if each.status is RequestStatus.OK]
    mean = float(np.mean(ok)) if ok else 0.0
    if not any(each.usage for each in found):
        agree = isinstance(published, int | float) and abs(mean - published) <= _SAME_COUNT * mean
        if not agree:
            theirs = f", and counted {published:.4g} on average" if isinstance(published, int | float) else ""
            yield (
                f"output tokens are events with content ({mean:.4g} on average): GenAI-Perf counts with a tokenizer"
                f"{theirs}, so TPOT and tokens/s are GenAI-Perf's only where each event is a token"
            )
    if empty := sum(each.first_is_empty and each.is_ok and each.last == each.responses[-1].stamp for each in found):
        yield f"the first response of {counted(empty, 'request')} is empty, and does not count as the first token"


def _left_out(found: Sequence[_Request]) -> Counter[str]:
    """Count what a recording has no place for."""
    left: Counter[str] = Counter()
    for each in found:
        left["texts of prompts and completions"] += bool(each.responses)
        left["the session of requests"] += "session_id" in each.inputs
    return +left


def _payload(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the body of a request; empty without one."""
    try:
        found = orjson.loads(_text(inputs.get("payload")))
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, Mapping) else {}


def _statistics(path: Path) -> Mapping[str, Any]:
    """Return the statistics that GenAI-Perf wrote beside the file; empty without them."""
    try:
        with path.with_name(f"{path.stem}_genai_perf.json").open("rb") as file:
            found = orjson.loads(file.read(_LARGEST_SUMMARY))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, Mapping) else {}


def _model(statistics: Mapping[str, Any]) -> str:
    names = _table(statistics, "input_config").get("model_names")
    return _text(names[0]) if isinstance(names, list) and names else _text(names)


def _stamp(value: Any, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < _LATEST:
        raise UsageError(f"{what} is {str(value)[:40]}: a time in nanoseconds is needed")
    return value


def _table(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = data.get(key)
    return found if isinstance(found, Mapping) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
