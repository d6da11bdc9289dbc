"""Reads objectives as people write them: `p99_ttft<500ms`, `mean_ttft<200ms`, `error_rate<1%`, `goodput>95%`."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from servetop.core.errors import UsageError
from servetop.core.units import MS_PER_S, parse_seconds
from servetop.run.search.search_evidence import LoadObjective

LATENCIES = ("ttft", "tpot", "itl", "e2el")
ERROR_RATE, GOODPUT = "error_rate", "goodput"
_FORM = re.compile(
    r"(?P<name>[A-Za-z][\w.]*)\s*(?P<sign><=|>=|<|>)\s*(?P<limit>[^@\s]+(\s+[a-z%]+)?)\s*(@\s*(?P<share>\S+))?"
)
_NAME = re.compile(r"(?:p(?P<percentile>\d+(?:\.\d+)?)_|(?P<mean>mean)_)?(?P<metric>[A-Za-z]\w*)")
_PERCENTILES = {"median": "p50", "average": "mean", "avg": "mean", "mean": "mean"}
"""What to write for other names of statistics; for those that are not here p99."""
BESIDE_MEAN = "error_rate<1%"
"""What is kept beside a mean where no limit of errors is given: a failed request has no latency to be in a mean."""
_EXAMPLE = "p99_ttft<500ms, ttft<500ms@95%, mean_ttft<200ms, error_rate<1% or goodput>95%"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiers:
    """All objectives of a search, and which of them belong together."""

    objectives: tuple[LoadObjective, ...]
    """Each different one once."""
    members: tuple[tuple[int, ...], ...]
    """For each tier, the places of its objectives."""


def parse_tiers(texts: Sequence[str], *, goodput: Mapping[str, float]) -> Tiers:
    """Return the tiers of `--slo` texts; UsageError for one that has no objective, or the same one twice."""
    if not texts:
        raise UsageError(f"a search needs an objective: add --slo, as in --slo '{_EXAMPLE.partition(',')[0]}'")
    objectives: list[LoadObjective] = []
    members: list[tuple[int, ...]] = []
    for text in texts:
        tier = _tier(text, goodput)
        for each in tier:
            if each not in objectives:
                objectives.append(each)
        found = tuple(objectives.index(each) for each in tier)
        if any(set(found) == set(other) for other in members):
            raise UsageError(f"--slo {text!r}: these objectives are given twice: leave one of them out")
        members.append(found)
    return Tiers(objectives=tuple(objectives), members=tuple(members))


def _tier(text: str, goodput: Mapping[str, float]) -> list[LoadObjective]:
    tier: list[LoadObjective] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        objective = parse_objective(part)
        if objective.metric == GOODPUT and not goodput:
            raise UsageError(f"--slo {part!r}: goodput of what? add --goodput, as in --goodput ttft:500 tpot:50")
        same = next((each for each in tier if _statistic(each) == _statistic(objective)), None)
        if same is not None:
            raise UsageError(f"--slo: {same.text!r} and {part!r} limit the same thing: leave one of them out")
        tier.append(objective)
    if not tier:
        raise UsageError(f"--slo {text!r} has no objective: use {_EXAMPLE}")
    if any(each.mean for each in tier) and all(each.metric != ERROR_RATE for each in tier):
        tier.append(parse_objective(BESIDE_MEAN))
    return tier


def _statistic(objective: LoadObjective) -> tuple[str, float | None]:
    """Return the figure that an objective limits; two limits of one figure in a tier are a mistake."""
    shares = objective.metric in LATENCIES
    return objective.metric, objective.share if shares else None  # a mean has the share 0, which no other has


def parse_objective(text: str) -> LoadObjective:
    """Return one objective; UsageError with what to write instead."""
    match = _FORM.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"--slo {text!r} is not an objective: use {_EXAMPLE}")
    name = _NAME.fullmatch(match["name"])
    metric = match["name"].lower() if name is None else name["metric"].lower()
    if name is None or metric not in (*LATENCIES, ERROR_RATE, GOODPUT):
        raise UsageError(f"--slo {text!r}: {_unknown(match['name'].lower(), metric, match['limit'])}")
    if metric in LATENCIES:
        return _latency(text.strip(), match, name)
    if match["share"] or name["percentile"] or name["mean"]:
        raise UsageError(f"--slo {text!r}: {metric} has no percentile or mean: use {_share_example(metric)}")
    return _share_of_requests(text.strip(), match, metric)


def _unknown(name: str, metric: str, limit: str) -> str:
    """Return what is wrong with a name, and what to write: another metric, or a percentile in front of it."""
    known = next((each for each in LATENCIES if name.startswith(f"{each}_") or name.endswith(f"_{each}")), None)
    statistic = "ms" if known is None else name.removeprefix(f"{known}_").removesuffix(f"_{known}")
    if statistic == "ms":
        return f"no metric {metric!r}: {_hint(metric)}"
    share = statistic if re.fullmatch(r"p\d+(\.\d+)?", statistic) else _PERCENTILES.get(statistic, "p99")
    return f"{statistic!r} is not a percentile or mean in front of the metric: write {share}_{known}<{limit}"


def _hint(metric: str) -> str:
    near = difflib.get_close_matches(metric.removesuffix("_ms"), (*LATENCIES, ERROR_RATE, GOODPUT), n=1)
    return f"did you mean {near[0]}?" if near else f"use {', '.join(LATENCIES)}, {ERROR_RATE} or {GOODPUT}"


def _share_example(metric: str) -> str:
    return "error_rate<1%" if metric == ERROR_RATE else "goodput>95%"


def _latency(text: str, match: re.Match[str], name: re.Match[str]) -> LoadObjective:
    metric = name["metric"].lower()
    if match["sign"].startswith(">"):
        raise UsageError(f"--slo {text!r} asks for a slow server: use {match['name']}<{match['limit']}")
    if name["percentile"] and match["share"]:
        raise UsageError(f"--slo {text!r} has two shares: use p99_{metric}<500ms or {metric}<500ms@99%")
    if name["mean"] and match["share"]:
        raise UsageError(f"--slo {text!r}: a mean has no share: use mean_{metric}<500ms or {metric}<500ms@99%")
    if name["mean"]:
        limit = _seconds(text, match["limit"].replace(" ", ""))
        return LoadObjective(text=text, metric=metric, limit=limit, share=0.0, mean=True)
    if not (name["percentile"] or match["share"]):
        raise UsageError(f"--slo {text!r}: which requests? write p99_{text} or {text}@95%")
    limit = _seconds(text, match["limit"].replace(" ", ""))
    share = _share(text, match["share"]) if match["share"] else float(name["percentile"]) / 100
    if share > 1:
        digits = name["percentile"]
        raise UsageError(f"--slo {text!r}: p{digits} is beyond p100: write p{digits[:2]}.{digits[2:]} or p99")
    if not 0 < share < 1:
        raise UsageError(f"--slo {text!r}: a limit for all or no requests cannot be measured: use p99 or @99%")
    return LoadObjective(text=text, metric=metric, limit=limit, share=share)


def _seconds(text: str, limit: str) -> float:
    try:
        number = float(limit)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        try:
            return parse_seconds(limit)
        except UsageError:
            raise UsageError(f"--slo {text!r}: {limit!r} is not a time above 0: write 500ms or 0.5s") from None
    raise UsageError(f"--slo {text!r}: {limit} of what? write {limit}ms or {limit}s")


def _share(text: str, share: str) -> float:
    try:
        value = float(share.removesuffix("%")) / (100 if share.endswith("%") else 1)
    except ValueError:
        value = math.nan
    if 1 <= value <= 100 and not share.endswith("%"):
        raise UsageError(f"--slo {text!r}: {share} of what? write {share}%")
    if not 0 <= value <= 1:
        raise UsageError(f"--slo {text!r}: {share!r} is not a share: write 95% or 0.95")
    return value


def _share_of_requests(text: str, match: re.Match[str], metric: str) -> LoadObjective:
    """Return an objective of the requests that failed, or of those that met all of `--goodput`."""
    at_most = match["sign"].startswith("<")
    if at_most != (metric == ERROR_RATE):
        raise UsageError(f"--slo {text!r} asks for the worse: use {_share_example(metric)}")
    value = _share(text, match["limit"])
    share = 1 - value if at_most else value
    if not 0 < share < 1:
        raise UsageError(f"--slo {text!r}: a share of all or no requests cannot be measured: use 1% or 99%")
    return LoadObjective(text=text, metric=metric, limit=None, share=share)


def objective_label(objective: LoadObjective) -> str:
    """Return an objective in words: `p99 TTFT ≤ 500 ms`, `TTFT ≤ 500 ms for 95 %`, `mean ITL ≤ 20 ms`."""
    if objective.metric == ERROR_RATE:
        return f"errors ≤ {(1 - objective.share) * 100:.4g} %"
    if objective.metric == GOODPUT:
        return f"goodput ≥ {objective.share * 100:.4g} %"
    limit = f"{objective.metric.upper()} ≤ {_limit(objective.limit or 0.0)}"
    if objective.mean:
        return f"mean {limit}"
    if "@" in objective.text:
        return f"{limit} for {objective.share * 100:.4g} %"
    return f"p{objective.share * 100:.4g} {limit}"


def _limit(seconds: float) -> str:
    return f"{seconds * MS_PER_S:.4g} ms" if seconds < 1 else f"{seconds:.4g} s"
