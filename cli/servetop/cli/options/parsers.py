"""Parsers of option values that are not just a number or a name; each raises UsageError for an invalid text."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from servetop.core.config_values.failure_limit import FailureLimit
from servetop.core.config_values.price import Prices
from servetop.core.errors import UsageError
from servetop.core.units import MS_PER_S, parse_seconds

_Number = TypeVar("_Number", int, float)
MOST_WORKERS = 64
SLO_METRICS = ("ttft", "ttfot", "tpot", "e2el")


def parse_workers(text: str) -> int:
    """Return the number of sender processes, or 0 for `auto`."""
    if text.strip().lower() == "auto":
        return 0
    if not text.strip().isdecimal() or not 1 <= int(text) <= MOST_WORKERS:
        raise UsageError(f"--workers {text}: use 1 to {MOST_WORKERS} sender processes, or auto")
    return int(text)


def parse_seconds_or_none(text: str) -> float:
    """Seconds, such as `5` or `500ms`; 0 for none."""
    return 0.0 if text in ("0", "0.0") else parse_seconds(text)


def parse_max_failures(text: str) -> str:
    """Return a valid limit, without spaces around it."""
    return FailureLimit.parse(text).text


def parse_prices(texts: Sequence[str]) -> tuple[str, ...]:
    """Prices that fit together, without spaces around them."""
    Prices.parse(texts)
    return tuple(text.strip() for text in texts)


def parse_percentiles(text: str) -> tuple[float, ...]:
    """Percentiles from 0 to 100 of a list such as `50,99.9`, in ascending order."""
    try:
        found = [float(part) for part in text.replace(",", " ").split()]
    except ValueError:
        found = [math.nan]
    if not all(0 <= each <= 100 for each in found):
        raise UsageError(f"--metric-percentiles {text}: use numbers from 0 to 100, as in 50,90,99.9")
    return tuple(sorted(set(found)))


def parse_goodput(texts: Sequence[str]) -> dict[str, float]:
    """Objectives in seconds, by metric, from `ttft:500` (milliseconds); one text may hold several."""
    objectives: dict[str, float] = {}
    for text in " ".join(texts).replace(",", " ").split():
        metric, _, limit = text.partition(":")
        if metric in objectives:
            raise UsageError(f"--goodput {text}: {metric} has an objective already: leave one of them out")
        try:
            objectives[metric] = float(limit) / MS_PER_S
        except ValueError:
            objectives[metric] = math.nan
        if metric not in SLO_METRICS or not objectives[metric] > 0:
            raise UsageError(f"--goodput {text}: use METRIC:MILLISECONDS with one of {', '.join(SLO_METRICS)}")
    return objectives


def parse_batch_sizes(text: str) -> tuple[int, ...]:
    """Whole numbers above 0 of a list such as `64,128`."""
    return _positive("--max-num-seqs", text, int)


def parse_rates(text: str) -> tuple[float, ...]:
    """Return the requests per second of a list such as `32,64`; inf for all requests at once."""
    return _positive("--request-rate", text, float)


def _positive(option: str, text: str, kind: Callable[[str], _Number]) -> tuple[_Number, ...]:
    try:
        values = tuple(kind(part) for part in text.split(","))
    except ValueError:
        values = ()
    if not values or not all(value > 0 for value in values):
        raise UsageError(f"{option} {text}: use numbers above 0, as in 32,64")
    return values


def parse_metadata(texts: Sequence[str]) -> dict[str, str]:
    """Return a dictionary from KEY=VALUE texts."""
    return _pairs("--metadata", texts, example="card=a100")


def parse_settings(texts: Sequence[str]) -> dict[str, str]:
    """Settings of the simulator's model from KEY=VALUE texts."""
    return _pairs("--set", texts, example="kv_blocks=2000")


def _pairs(option: str, texts: Sequence[str], *, example: str) -> dict[str, str]:
    bad = next((text for text in texts if "=" not in text or text.startswith("=")), None)
    if bad is not None:
        raise UsageError(f"{option} {bad}: use KEY=VALUE, as in {example}")
    return dict(text.split("=", 1) for text in texts)


def parse_fraction(text: str) -> float:
    """Return a share such as `2%` or `0.02`, at least 0."""
    number = text.strip().removesuffix("%").strip()
    try:
        value = float(number) / (100 if text.strip().endswith("%") else 1)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise UsageError(f"{text}: use a share such as 2% or 0.02")
    return value


def parse_fractions(texts: Sequence[str]) -> dict[str, float]:
    """Shares above 0 by metric, from texts such as `output_throughput=2%`."""
    shares = {
        key: parse_fraction(text) for key, text in _pairs("--margin", texts, example="output_throughput=2%").items()
    }
    zero = next((key for key, share in shares.items() if not share), None)
    if zero is not None:
        raise UsageError(f"--margin {zero}: use a share above 0, as in {zero}=2%")
    return shares


def parse_command(text: str) -> tuple[str, ...]:
    """Return the words of a command, split as a shell does."""
    import shlex  # not for --help

    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"cannot split the command into words ({error}): check its quotes") from None


def parse_extra_body(text: str) -> Mapping[str, Any]:
    """Return a JSON object."""
    import json  # not for --help

    try:
        body = json.loads(text) if text else {}
    except json.JSONDecodeError as error:
        raise UsageError(f"--extra-body is not JSON ({error}): use an object such as '{{\"top_p\": 0.9}}'") from None
    if not isinstance(body, dict):
        raise UsageError("--extra-body: use a JSON object such as '{\"top_p\": 0.9}'")
    try:
        json.dumps(body, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = error.object[error.start : error.end]
        raise UsageError(f"--extra-body: {half!r} is half a surrogate pair: give the whole character") from None
    return body


def parse_headers(texts: Sequence[str]) -> Mapping[str, str]:
    """Headers from NAME:VALUE texts."""
    from servetop.workload import request_headers  # not for --help

    return request_headers.parse_headers(texts)


def parse_metrics_header_env(texts: Sequence[str]) -> Mapping[str, str]:
    """Environment variables by header of the metrics server, from NAME=VAR texts."""
    from servetop.workload import request_headers  # not for --help

    return request_headers.parse_header_env(texts, option="--metrics-header-env")


def parse_header_env(texts: Sequence[str]) -> Mapping[str, str]:
    """Environment variables by header, from NAME=VAR texts."""
    from servetop.workload import request_headers  # not for --help

    return request_headers.parse_header_env(texts)


def parse_model_mix(text: str) -> Mapping[str, float]:
    """Weights by model."""
    if not text:
        return {}
    from servetop.workload.prompts import model_mix  # numpy: not for --help

    return model_mix.parse_model_mix(text)
