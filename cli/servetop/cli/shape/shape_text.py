"""The report of `servetop shape` as lines of text."""

from __future__ import annotations

from collections.abc import Iterator

from servetop.core.text import formats
from servetop.core.text.counted import counted
from servetop.workload.shape.shape_report import ShapedLengths, ShapeReport, ShapeSource

_WIDTH = 17


def report_lines(report: ShapeReport, replay: str | None) -> Iterator[str]:
    """Yield the lines; `replay` is the command that sends the trace, None if none was written."""
    for source in report.sources:
        yield _line(f"source {source.number}", _source(source))
    yield _line("requests", f"{report.requests:,} in {formats.seconds(report.seconds)}")
    yield _line("rate", _rate(report))
    yield _line("prompt tokens", _lengths(report.input_tokens))
    yield _line("output tokens", _lengths(report.output_tokens))
    yield _line("shared prefixes", _shared(report))
    if report.sessions:
        turns = f"{formats.number(report.turns_mean)} turns in mean, {report.turns_max:,} at most"
        yield _line("sessions", f"{report.sessions:,}: {turns}")
    else:
        yield _line("sessions", "unknown")
    for each in report.missing:
        yield _line("missing", f"{each.what} of {counted(each.requests, 'request')}: {each.consequence}")
    if replay is None:
        yield _line("to write it", "add -o shape.jsonl")
    else:
        yield _line("to send it", replay)


def _line(label: str, text: str) -> str:
    return f"{label:<{_WIDTH}}{text}"


def _source(source: ShapeSource) -> str:
    text = f"{source.format}: {counted(source.requests, 'request')}"
    if source.unreadable:
        lines = counted(source.unreadable, "unreadable line")
        text += f", {lines} left out (first: line {source.first_unreadable})"
    return text


def _rate(report: ShapeReport) -> str:
    if report.mean_rate is None:
        return "all at once"
    parts = [f"{formats.number(report.mean_rate)} req/s in mean"]
    if report.peak_rate is not None:
        parts.append(f"{formats.number(report.peak_rate)} req/s in the busiest minute")
    if report.gap_cv is not None:
        parts.append(f"CV of the gaps {report.gap_cv:.2f} (Poisson: 1)")
    return ", ".join(parts)


def _lengths(lengths: ShapedLengths) -> str:
    figures = {"mean": lengths.mean, "p50": lengths.p50, "p90": lengths.p90, "p99": lengths.p99, "max": lengths.max}
    return ", ".join(f"{name} {round(value):,}" for name, value in figures.items())


def _shared(report: ShapeReport) -> str:
    if report.shared_prefix is None:
        return "unknown: the logs show no prompts"
    text = f"{formats.percent(report.shared_prefix)} of the prompt tokens are as in earlier prompts"
    blocks = f"blocks of {report.block_tokens} tokens"
    if report.characters_per_token is not None:
        blocks += f", {report.characters_per_token:.2f} characters a token"
    return f"{text} ({blocks})"
