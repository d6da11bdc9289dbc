"""Conformance checks for engine plug-ins, to be called from the plug-in's own tests."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from servetop.analysis.exported.metric_spec import MetricSpec
from servetop.analysis.exported.metric_values import missing_metrics
from servetop.analysis.exported.scrape_history import SeriesName
from servetop.core.config import WorkloadConfig
from servetop.core.events import EngineSample
from servetop.core.interfaces.dialect import Dialect, Prompt
from servetop.engines.dialects.dialect_registry import dialect_for
from servetop.engines.engine import Engine
from servetop.engines.metrics.metrics_reader import GAUGES, MetricsReader, not_exported
from servetop.engines.metrics.series_collector import SeriesCollector

_PROMPT = Prompt(text="One two three", token_ids=(1, 2, 3), input_tokens=3, output_tokens=4)
_BROKEN = (b"", b"\xff\xfe\x00", b"{", b"[]", b"data: {\n\n", b"<html>", b"x" * 4096)
"""Bodies of a faulty server, parsed as response and as metrics page."""


def find_problems(kind: Callable[[], Engine], *, pages: Mapping[str, bytes] | None = None) -> list[str]:
    """Check an engine class; return one line per problem, and an empty list for an engine that conforms.

    `kind` is the class that the entry point names. `pages` are the bodies of its metrics pages by path, as sent by a
    server that has served requests.
    """
    if abstract := sorted(getattr(kind, "__abstractmethods__", ())):
        return [f"the engine has no {name} (servetop.engines.engine.Engine)" for name in abstract]
    try:
        engine = kind()
    except TypeError as error:
        return [f"the engine class must take no arguments: {error}"]
    if lacking := [name for name in _members() if not hasattr(engine, name)]:
        return [f"the engine has no {name} (servetop.engines.engine.Engine)" for name in lacking]
    return [*_plain_problems(engine), *_dialects_problems(engine), *_metrics_problems(engine, pages)]


def _members() -> list[str]:
    """Return the public attributes and methods of `Engine`."""
    return sorted({*Engine.__annotations__, *(name for name in vars(Engine) if not name.startswith("_"))})


def _plain_problems(engine: Engine) -> Iterator[str]:
    for path in (engine.ready_path, *engine.probe_paths):
        if not path.startswith("/"):
            yield f"{path!r} is not a path: ready_path and probe_paths must begin with /"
    if not engine.endpoints:
        yield "endpoints is empty: name a dialect, as in {'completions': 'module:Class'}"
    for name in ("failure_reason", "boot_facts"):
        yield from _raised(f"{name} of a log without known lines", getattr(engine, name), ["", "\x00 unknown"])


def _dialects_problems(engine: Engine) -> Iterator[str]:
    for endpoint, location in engine.endpoints.items():
        made: list[Dialect] = []
        for counts in (False, True):
            words = f"{location}, made as Class(model, continuous_usage={counts})"
            yield from _raised(words, lambda: made.append(dialect_for(location, model="m", continuous_usage=counts)))  # noqa: B023
        for dialect in made:
            yield from (f"endpoint {endpoint}: {each}" for each in _dialect_problems(dialect))


def _dialect_problems(dialect: Dialect) -> Iterator[str]:
    if not str(getattr(dialect, "path", "")).startswith("/"):
        yield "path must begin with /, as in /v1/completions"
    yield from _raised("body is not JSON", lambda: json.loads(dialect.body(_PROMPT, WorkloadConfig())))
    for broken in _BROKEN:
        yield from _raised(f"parse_response({broken[:9]!r})", lambda: list(dialect.parse_response(broken)))  # noqa: B023
        yield from _raised(f"error_text({broken[:9]!r})", lambda: str(dialect.error_text(broken)))  # noqa: B023
        yield from _raised(f"a stream of {broken[:9]!r}", lambda: _read(dialect, broken))  # noqa: B023


def _read(dialect: Dialect, body: bytes) -> None:
    """Parse the body in one piece and byte by byte, as a network may deliver it."""
    for pieces in ((body,), tuple(bytes([each]) for each in body)):
        parser = dialect.parser(keep_texts=True)
        for piece in pieces:
            list(parser.feed(piece))
        list(parser.finish())


def _metrics_problems(engine: Engine, pages: Mapping[str, bytes] | None) -> Iterator[str]:
    reader = engine.metrics()
    if reader is None:
        return
    if not reader.paths or not all(path.startswith("/") for path in reader.paths):
        yield f"the metrics reader needs at least one path, each beginning with /: paths is {list(reader.paths)}"
        return
    for broken in _BROKEN:
        page = dict.fromkeys(reader.paths, broken)
        for name in ("facts", "missing"):
            yield from _raised(f"{name} of a metrics page {broken[:9]!r}", getattr(reader, name), page)
        yield from _raised(f"sample of a metrics page {broken[:9]!r}", lambda: reader.sample(page, start=0.0, end=0.0))  # noqa: B023
    if pages is not None:
        yield from _page_problems(engine.metrics() or reader, pages)
        yield from _exported_problems(engine.exported, pages)


def _page_problems(reader: MetricsReader, pages: Mapping[str, bytes]) -> Iterator[str]:
    """Compare `missing` with the fields that `sample` leaves empty."""
    sample = reader.sample(pages, start=0.0, end=0.0)
    if not isinstance(sample, EngineSample):
        yield f"the pages at {', '.join(pages)} are not recognised: sample returns {sample!r}"
        return
    named, absent = tuple(reader.missing(pages)), not_exported(sample)
    yield from (f"missing does not name {name}, which sample leaves empty" for name in absent if name not in named)
    yield from (f"missing names {name}, which sample fills" for name in named if name in GAUGES and name not in absent)
    yield from (f"missing names {name!r}, which is not a field of EngineSample" for name in named if name not in GAUGES)


def _exported_problems(specs: Sequence[MetricSpec], pages: Mapping[str, bytes]) -> Iterator[str]:
    """Read the pages as for the engine page."""
    collector = SeriesCollector(specs)
    collector.collect(pages, at=0.0)
    reading = collector.take()
    found = [SeriesName.parse(name) for name in reading.values] if reading else []
    for spec in missing_metrics(specs, found):
        names = ", ".join((*spec.series, *spec.of))
        yield f"exported: the pages lack a series of {spec.name!r} ({names}, as a {spec.kind})"


def _raised(what: str, call: Callable[..., Any], *arguments: Mapping[str, bytes] | Sequence[str]) -> Iterator[str]:
    try:
        call(*arguments)
    except Exception as error:  # servetop handles none of them
        yield f"{what}: {type(error).__name__}: {error}"
