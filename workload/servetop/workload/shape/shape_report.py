"""What a recorded load holds, what it lacks, and what that means for its replay: `servetop shape --json`."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from servetop.workload.shape.recorded_load import RecordedLoad, ShapedRequest, SourceFacts

_MINUTE = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapedLengths:
    """Tokens of prompts or of outputs."""

    mean: float
    p50: float
    p90: float
    p99: float
    max: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeSource:
    """What was read from one source, which is known by its position on the command line."""

    number: int
    format: str
    requests: int
    unreadable: int
    first_unreadable: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingFact:
    """What the logs lack, for how many requests, and the consequence."""

    what: str
    requests: int
    consequence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeReport:
    """Figures of a recorded load; None: unknown."""

    sources: tuple[ShapeSource, ...]
    requests: int
    seconds: float
    """From the first arrival to the last."""
    mean_rate: float | None
    """Requests per second; None if all arrive at once."""
    peak_rate: float | None
    """Requests per second in the minute with the most; None for less than a minute."""
    gap_cv: float | None
    """Coefficient of variation of the times between arrivals: 1 for Poisson arrivals, more for bursts."""
    input_tokens: ShapedLengths
    output_tokens: ShapedLengths
    block_tokens: int
    characters_per_token: float | None
    """By which prompts that are texts were cut into blocks; None without such prompts."""
    shared_prefix: float | None
    """Part of the prompt tokens that a prefix cache without end finds; None if no prompt is known."""
    sessions: int
    turns_mean: float | None
    turns_max: int | None
    missing: tuple[MissingFact, ...]


def shape_report(load: RecordedLoad, *, output_len: int) -> ShapeReport:
    """Return the figures of a load; `output_len` is what was assumed for outputs without a length."""
    requests = load.requests
    seconds = requests[-1].at
    turns = Counter(each.session for each in requests if each.session is not None)
    return ShapeReport(
        sources=tuple(map(_source, load.sources)),
        requests=len(requests),
        seconds=seconds,
        mean_rate=(len(requests) - 1) / seconds if seconds else None,
        peak_rate=_peak(requests) if seconds >= _MINUTE else None,
        gap_cv=_gap_cv(requests),
        input_tokens=_lengths([each.input_tokens for each in requests]),
        output_tokens=_lengths([each.output_tokens or 0 for each in requests]),
        block_tokens=load.block_tokens,
        characters_per_token=load.characters_per_token,
        shared_prefix=shared_prefix(requests, load.block_tokens),
        sessions=len(turns),
        turns_mean=turns.total() / len(turns) if turns else None,
        turns_max=max(turns.values()) if turns else None,
        missing=tuple(_missing(load, output_len=output_len)),
    )


def shared_prefix(requests: Sequence[ShapedRequest], block_tokens: int) -> float | None:
    """Return the part of the prompt tokens in leading blocks of earlier prompts; None if no prompt has blocks."""
    seen = set[int]()
    found = tokens = 0
    for each in requests:
        known = sum(1 for _ in itertools.takewhile(seen.__contains__, each.blocks))
        found += min(known * block_tokens, each.input_tokens)
        tokens += each.input_tokens
        seen.update(each.blocks)
    return found / tokens if seen else None


def _source(facts: SourceFacts) -> ShapeSource:
    return ShapeSource(
        number=facts.number,
        format=facts.format,
        requests=facts.requests,
        unreadable=facts.unreadable,
        first_unreadable=facts.first_unreadable,
    )


def _lengths(values: Sequence[int]) -> ShapedLengths:
    p50, p90, p99 = np.percentile(values, (50, 90, 99)).tolist()
    return ShapedLengths(mean=float(np.mean(values)), p50=p50, p90=p90, p99=p99, max=max(values))


def _peak(requests: Sequence[ShapedRequest]) -> float:
    """Requests per second of the whole minute with the most, counted from the first arrival."""
    minutes = Counter(math.floor(each.at / _MINUTE) for each in requests)
    return max(minutes.values()) / _MINUTE


def _gap_cv(requests: Sequence[ShapedRequest]) -> float | None:
    gaps = np.diff([each.at for each in requests])
    mean = float(gaps.mean()) if len(gaps) > 1 else 0.0
    return float(gaps.std()) / mean if mean else None


def _missing(load: RecordedLoad, *, output_len: int) -> Iterator[MissingFact]:
    facts = (
        ("prompt lengths", load.left_out_inputs, "left out: name their field with --fields, or give --input-len"),
        ("prompt lengths", load.assumed_inputs, "--input-len is assumed"),
        ("prompt lengths", load.estimated_inputs, "estimated from the texts: the engine's tokenizer counts otherwise"),
        (
            "output lengths",
            load.assumed_outputs,
            f"{output_len} tokens are assumed: TPOT, batch sizes and KV cache depend on them (--output-len)",
        ),
        ("output lengths", load.estimated_outputs, "estimated from the texts of the outputs"),
        ("outputs", load.without_output, "0 tokens, as of failed requests: left out"),
        (
            "prompts",
            sum(not each.blocks for each in load.requests),
            "replayed as random tokens: a prefix cache finds nothing, so TTFT is higher than in production",
        ),
        ("sessions", sum(each.session is None for each in load.requests), "turns look like new users"),
        (
            "exact times",
            load.spread,
            "spread at random over the resolution of their log: bursts within it are unknown",
        ),
    )
    yield from (MissingFact(what=what, requests=count, consequence=text) for what, count, text in facts if count)
