"""Metrics of an engine that servetop does not know: shown by their own names and types, and never judged."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from servetop.analysis.exported.metric_spec import BOUND, MetricKind, MetricSpec, Unit
from servetop.core.events import EngineSample
from servetop.engines.metrics.metrics_reader import GAUGES, Pages
from servetop.engines.metrics.prometheus_text import is_text, parse_line
from servetop.engines.metrics.spec_builders import gauge_of, mean_of, quantiles_of, rate_of
from servetop.engines.server_facts import ServerFacts

MOST_METRICS = 60
"""Metrics of a page that are shown."""
MOST_HISTOGRAMS = 24
"""Histograms among them, each with dozens of series."""
MOST_BUCKETS = 100
"""Buckets of a histogram that is shown, at most."""
MOST_SHOWN_LABELS = 8
"""Values of a label that have a row each; the rows of a gauge with more are added up."""
_MOST_ROWS = 20_000
"""Rows of a page from which its metrics are found."""
_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]{0,119}")
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]{0,47}")
_TYPES = ("counter", "gauge", "histogram", "summary")
_PARTS = ("_bucket", "_sum", "_count", "_created")
_RUNTIME = ("go_", "jvm_", "process_", "promhttp_", "python_")
"""Prefixes of what client libraries export of the process, which is shown last."""
_HISTOGRAMS, _COUNTERS, _GAUGES, _PROCESS = "Histograms", "Counters", "Gauges", "Process"


@dataclass
class _Family:
    """The rows of one metric."""

    name: str
    kind: str
    labels: dict[str, Counter[str]] = field(default_factory=dict)
    """The values of each label."""
    rows: int = 0


@dataclass(frozen=True, slots=True)
class UnknownMetrics:
    """A reader whose samples have no values: it says that the page was read, and no more."""

    path: str

    @property
    def paths(self) -> Sequence[str]:
        """The one page."""
        return (self.path,)

    def sample(self, pages: Pages, *, start: float, end: float) -> EngineSample | None:
        """Return a sample without values; None if the page has no metrics."""
        page = pages.get(self.path, b"")
        found = is_text(page) and any(map(parse_line, page.decode("utf-8", errors="replace").split("\n")))
        return EngineSample(scrape_start=start, scrape_end=end) if found else None

    def facts(self, pages: Pages) -> ServerFacts:
        """Return nothing: what the series mean is unknown."""
        del pages
        return ServerFacts()

    def missing(self, pages: Pages) -> tuple[str, ...]:
        """Return all fields."""
        del pages
        return GAUGES


def unknown_specs(page: bytes) -> tuple[MetricSpec, ...]:
    """Return the metrics of a page by its own names and types: histograms, counters and gauges, then the process.

    The first ones of each kind, MOST_METRICS in all, are returned.
    """
    if not is_text(page):
        return ()
    families = _families(page.decode("utf-8", errors="replace").split("\n"))
    own = [each for each in families if not each.name.startswith(_RUNTIME)]
    histograms = [each for each in own if each.kind in ("histogram", "summary") and _is_small(each)][:MOST_HISTOGRAMS]
    others = [each for kind in ("counter", "gauge") for each in own if each.kind == kind]
    process = [each for each in families if each not in own and each.kind in ("counter", "gauge")]
    chosen = [*histograms, *others, *process][:MOST_METRICS]
    return tuple(spec for each in chosen for spec in _specs(each))


def _families(lines: Sequence[str]) -> list[_Family]:
    types = dict(_declared(lines))
    found = {name: _Family(name, kind) for name, kind in types.items()}
    for line in lines[:_MOST_ROWS]:
        parsed = None if line.startswith("#") else parse_line(line)
        if parsed is None or not _NAME.fullmatch(parsed[0]):
            continue
        name, labels = _family_name(parsed[0], types), parsed[1].labels
        if parsed[0] != name and parsed[0].endswith(_PARTS[1:]):
            continue  # its labels are those of the buckets
        family = found.setdefault(name, _Family(name, _kind_by_name(parsed[0], labels)))
        family.rows += 1
        for label, value in labels.items():
            if _LABEL.fullmatch(label):
                family.labels.setdefault(label, Counter())[value] += 1
    return [each for each in found.values() if each.rows or each.kind != "gauge"]


def _declared(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the types that the page declares, by the name of the samples."""
    for line in lines:
        words = line.split() if line.startswith("# TYPE ") else []
        if len(words) == 4 and words[3] in _TYPES and _NAME.fullmatch(words[2]) and not words[2].endswith("_created"):
            yield words[2], words[3]


def _family_name(sample: str, types: dict[str, str]) -> str:
    """Return the metric of a sample: OpenMetrics declares a counter without `_total`."""
    for ending in (*_PARTS, "_total"):
        base = sample.removesuffix(ending)
        if base != sample and sample not in types and (base in types or ending == "_bucket"):
            return base
    return sample


def _kind_by_name(sample: str, labels: object) -> str:
    if sample.endswith("_bucket") and isinstance(labels, dict) and BOUND in labels:
        return "histogram"
    return "counter" if sample.endswith(("_total", "_count", "_sum")) else "gauge"


def _is_small(family: _Family) -> bool:
    return len(family.labels.get(BOUND, ())) <= MOST_BUCKETS


def _specs(family: _Family) -> Iterator[MetricSpec]:
    name, unit = family.name, _unit(family.name)
    group = _PROCESS if name.startswith(_RUNTIME) else _COUNTERS
    match family.kind:
        case "histogram":
            quantiles = quantiles_of(_HISTOGRAMS, name, name, unit=unit)
            yield quantiles
            yield replace(quantiles, name=f"{name} p99", kind=MetricKind.P99)
            yield rate_of(_HISTOGRAMS, f"{name} count", f"{name}_count", unit=Unit.PER_SECOND)
        case "summary":
            yield mean_of(_HISTOGRAMS, f"{name} mean", name, unit=unit)
            yield rate_of(_HISTOGRAMS, f"{name} count", f"{name}_count", unit=Unit.PER_SECOND)
        case "counter":
            unit = Unit.BYTES_PER_SECOND if unit is Unit.BYTES else Unit.PER_SECOND
            yield rate_of(group, name, name.removesuffix("_total"), unit=unit)
        case _:
            yield _gauge(family, group if group is _PROCESS else _GAUGES, unit)


def _gauge(family: _Family, group: str, unit: Unit) -> MetricSpec:
    """Return a gauge, with a row for each value of the label that differs most between its rows, or their sum."""
    if family.rows < 2 or not family.labels:
        return gauge_of(group, family.name, family.name, unit=unit)
    label, values = max(family.labels.items(), key=lambda each: len(each[1]))
    if len(values) > MOST_SHOWN_LABELS:
        return gauge_of(group, f"{family.name}, sum of {family.rows:,}", family.name, unit=unit)
    return gauge_of(group, f"{family.name} {label}:", family.name, by=label, unit=unit)


def _unit(name: str) -> Unit:
    """Return the unit that Prometheus' naming puts at the end of a name; a time of day is a number."""
    plain = name.removesuffix("_total")
    if plain.endswith("_seconds") and not plain.endswith(("time_seconds", "timestamp_seconds")):
        return Unit.SECONDS
    if plain.endswith("_bytes"):
        return Unit.BYTES
    return Unit.NUMBER
