"""Collects the requests of several logs, ordered by time, without their texts."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from servetop.core.errors import UsageError
from servetop.workload.shape.field_map import FieldMap
from servetop.workload.shape.log_source import FORMATS, LogFormat, recognised, source_lines
from servetop.workload.shape.logged_request import LoggedEvent, LoggedOutput, LoggedRequest, UnreadableLine
from servetop.workload.shape.prefix_groups import MEASURED_REQUESTS, PrefixGroups, characters_per_token
from servetop.workload.token_estimate import estimated_tokens

_SPREAD = 0x5A9E
_MOST_SECONDS = 366 * 86_400.0
"""Longest load: a year."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeSettings:
    """How logs become a trace."""

    fields: FieldMap = field(default_factory=FieldMap)
    format: str | None = None
    """Name of the format of all sources; None: each by its content."""
    salt: bytes = field(repr=False)
    block_tokens: int = 64
    characters_per_token: float | None = None
    """None: measured from the first requests."""
    input_len: int | None = None
    """Prompt tokens of requests whose log has none; None: they are left out."""
    output_len: int = 128
    """Output tokens of requests whose log has none."""


@dataclass(slots=True, kw_only=True)
class SourceFacts:
    """What was read from one source."""

    number: int
    format: str
    requests: int = 0
    unreadable: int = 0
    """Lines that are not of the format, or have an impossible value."""
    first_unreadable: int | None = None
    """Number of the first of them, from 1."""


@dataclass(slots=True, kw_only=True)
class ShapedRequest:
    """One request of a trace."""

    at: float
    """Seconds since the first request."""
    input_tokens: int
    output_tokens: int | None
    blocks: tuple[int, ...]
    """Identities of the blocks of its prompt; () if the log does not show the prompt."""
    session: int | None


@dataclass(slots=True, kw_only=True)
class RecordedLoad:
    """The requests of all sources by ascending time, and what their logs lack."""

    block_tokens: int
    characters_per_token: float | None = None
    """Where prompts were texts."""
    requests: list[ShapedRequest] = field(default_factory=list)
    sources: list[SourceFacts] = field(default_factory=list)
    estimated_inputs: int = 0
    """Requests whose prompt tokens are estimated from their texts."""
    assumed_inputs: int = 0
    left_out_inputs: int = 0
    """Requests without a prompt length, which are left out."""
    estimated_outputs: int = 0
    assumed_outputs: int = 0
    without_output: int = 0
    """Requests that had no output, as failed ones; they are left out."""
    spread: int = 0
    """Requests whose times the log gives in whole seconds or more, and which are spread over these."""


def read_load(paths: Sequence[str], settings: ShapeSettings) -> RecordedLoad:
    """Read all sources; UsageError if one cannot be read, or if none has a request with a length."""
    collector = _Collector(settings)
    events = ((number, event) for number, path in enumerate(paths, 1) for event in _events(path, number, collector))
    first = list(itertools.islice(events, MEASURED_REQUESTS))
    texts = [event for _, event in first if isinstance(event, LoggedRequest)]
    ratio = settings.characters_per_token or characters_per_token(texts)
    groups = PrefixGroups(settings.salt, block_tokens=settings.block_tokens, characters_per_token=ratio)
    for number, event in itertools.chain(first, events):
        collector.add(number, event, groups)
    load = collector.finish()
    load.characters_per_token = ratio if collector.has_texts else None
    return load


def _events(path: str, number: int, collector: _Collector) -> Iterator[LoggedEvent]:
    """Yield what a source says, and count its unreadable lines."""
    settings = collector.settings
    with source_lines(path, number) as lines:
        name, start = (settings.format, []) if settings.format else recognised(lines, number)
        facts = SourceFacts(number=number, format=name)
        collector.load.sources.append(facts)
        reader = FORMATS[name](settings.fields)
        for line_number, line in itertools.chain(start, lines):
            try:
                for event in _events_of_line(reader, line):
                    facts.requests += isinstance(event, LoggedRequest)
                    yield event
            except UnreadableLine:
                facts.unreadable += 1
                facts.first_unreadable = facts.first_unreadable or line_number


def _events_of_line(reader: LogFormat, line: str | None) -> Iterator[LoggedEvent]:
    if line is None:
        raise UnreadableLine
    return reader.events(line)


@dataclass(slots=True)
class _Kept:
    """One request while others are still read."""

    request: ShapedRequest
    source: int
    resolution: float
    parent: tuple[int, str] | None
    counted: bool = True


class _Collector:
    """Holds what is kept of each request."""

    def __init__(self, settings: ShapeSettings) -> None:
        self.settings = settings
        self.load = RecordedLoad(block_tokens=settings.block_tokens)
        self.has_texts = False
        self._kept: list[_Kept] = []
        self._by_key: dict[tuple[int, str], _Kept] = {}
        self._fine = set[int]()
        """Sources that have times with fractions of a second, so that a whole second is one too."""

    def add(self, source: int, event: LoggedEvent, groups: PrefixGroups) -> None:
        """Keep a request without its texts, or the output of an earlier one."""
        if isinstance(event, LoggedOutput):
            self._set_output(self._by_key.get((source, event.key)), event)
            return
        self._check_blocks(source, event)
        tokens = self._input_tokens(event)
        if tokens is None:
            return
        self.has_texts |= bool(event.prompt and not event.prompt_ids)
        request = ShapedRequest(
            at=event.at,
            input_tokens=tokens,
            output_tokens=event.output_tokens,
            blocks=groups.blocks(event, tokens, source=source),
            session=None if event.session is None else groups.session(event.session, source=source),
        )
        if not event.resolution:
            self._fine.add(source)
        kept = _Kept(request, source, event.resolution, (source, event.parent) if event.parent else None)
        self._kept.append(kept)
        if event.key:
            self._by_key[source, event.key] = kept

    def finish(self) -> RecordedLoad:
        """Return the load: nested requests removed, by ascending time, with an output length for each."""
        load = self.load
        kept = [each for each in self._kept if each.parent is None or each.parent not in self._by_key]
        load.without_output = sum(each.request.output_tokens == 0 for each in kept)
        kept = [each for each in kept if each.request.output_tokens != 0]
        if not kept:
            raise UsageError(self._nothing())
        _check_span(kept)
        _spread(load, [each for each in kept if each.resolution and each.source not in self._fine])
        load.estimated_outputs = sum(not each.counted for each in kept)
        load.requests = sorted((each.request for each in kept), key=lambda request: request.at)
        start = load.requests[0].at
        for request in load.requests:
            request.at -= start
            if request.output_tokens is None:
                request.output_tokens = self.settings.output_len
                load.assumed_outputs += 1
        return load

    def _input_tokens(self, event: LoggedRequest) -> int | None:
        """Return the length of a prompt as counted, estimated or assumed; None if the request is left out."""
        counted = event.input_tokens or len(event.prompt_ids)
        if counted:
            return counted
        if event.prompt:
            self.load.estimated_inputs += 1
            return estimated_tokens(event.prompt)
        if self.settings.input_len is not None:
            self.load.assumed_inputs += 1
            return self.settings.input_len
        self.load.left_out_inputs += 1
        return None

    def _check_blocks(self, source: int, event: LoggedRequest) -> None:
        if event.blocks and event.block_tokens % self.settings.block_tokens:
            raise UsageError(
                f"--block-tokens {self.settings.block_tokens}: source {source} has blocks of {event.block_tokens} "
                "tokens: give a number that divides them"
            )

    def _nothing(self) -> str:
        """Return why there is nothing to write."""
        load = self.load
        lines = sum(each.unreadable for each in load.sources)
        if load.left_out_inputs:
            return (
                f"none of {load.left_out_inputs:,} requests has a prompt length: name its field with --fields "
                "input_length=PATH, log prompts (vLLM: level DEBUG), or assume one with --input-len"
            )
        if load.without_output:
            return f"all {load.without_output:,} requests have 0 output tokens: name their field with --fields"
        if lines:
            first = next(each for each in load.sources if each.unreadable)
            return (
                f"no request in {lines:,} unreadable lines (first: line {first.first_unreadable} of source "
                f"{first.number}, read as {first.format}): give --format, or --fields timestamp=PATH,input_length=PATH"
            )
        return "the sources have no requests: give logs with requests (vLLM: start it with --enable-log-requests)"

    @staticmethod
    def _set_output(kept: _Kept | None, event: LoggedOutput) -> None:
        """Note the output of a request; a counted one replaces an estimate."""
        if kept is None or (kept.counted and kept.request.output_tokens is not None):
            return
        kept.request.output_tokens, kept.counted = event.output_tokens, event.counted


def _check_span(kept: Sequence[_Kept]) -> None:
    """Raise UsageError for sources whose clocks have nothing in common, such as one that starts at 0."""
    times = [each.request.at for each in kept]
    if max(times) - min(times) > _MOST_SECONDS:
        years = round((max(times) - min(times)) / _MOST_SECONDS)
        raise UsageError(
            f"the times of the requests are about {years} years apart: shape sources whose times begin elsewhere "
            "(at 0, or without a year) one by one, or correct the times"
        )


def _spread(load: RecordedLoad, coarse: list[_Kept]) -> None:
    """Delay arrivals whose log has only coarse times by a random part of its resolution, in their order."""
    generator = np.random.default_rng(_SPREAD)
    coarse.sort(key=lambda each: each.request.at)
    for _, group in itertools.groupby(coarse, key=lambda each: each.request.at):
        members = list(group)
        if len(members) == 1 and members[0].resolution > 1:  # a trace of that format with times of its own
            continue
        parts = np.sort(generator.random(len(members))).tolist()
        for each, part in zip(members, parts, strict=True):
            each.request.at += part * each.resolution
        load.spread += len(members)
