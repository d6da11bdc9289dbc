"""Prometheus text format: the few metric kinds that vLLM exports, with constant labels."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping

Labels = Mapping[str, str]


def label_text(labels: Labels) -> str:
    """Return `{a="x",b="y"}`, sorted and escaped; empty without labels."""
    if not labels:
        return ""
    escaped = (
        (key, value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")) for key, value in labels.items()
    )
    return "{" + ",".join(f'{key}="{value}"' for key, value in sorted(escaped)) + "}"


def openmetrics(page: str) -> str:
    """Convert a page to OpenMetrics 1.0: counter families lose `_total`, and `# EOF` ends the page."""
    kinds = {name: kind for _, keyword, name, kind in map(_comment, page.splitlines()) if keyword == "TYPE"}
    lines: list[str] = []
    for line in page.splitlines():
        hash_sign, keyword, name, rest = _comment(line)
        metric = name if hash_sign else line.partition("{")[0].partition(" ")[0]
        if kinds.get(metric) != "counter":
            lines.append(line)
            continue
        family = metric.removesuffix("_total")
        lines.append(f"# {keyword} {family} {rest}" if hash_sign else f"{family}_total{line[len(metric) :]}")
    return "\n".join([*lines, "# EOF", ""])


def _comment(line: str) -> tuple[str, str, str, str]:
    """Split a comment into `#`, HELP or TYPE, the family and the rest; empty strings for a sample."""
    parts = line.split(" ", 3)
    return (parts[0], parts[1], parts[2], parts[3]) if parts[0] == "#" and len(parts) == 4 else ("", "", "", "")


class SampleSeries:
    """A gauge or counter, by `kind`, with one or several label sets."""

    def __init__(self, name: str, text: str, *, kind: str, labels: Labels) -> None:
        self.name = name
        self.kind = kind
        self.text = text
        self._labels = labels
        self._values: dict[str, float] = {}

    def set(self, value: float, **labels: str) -> None:
        """Set the value of the series with these further labels."""
        self._values[label_text({**self._labels, **labels})] = value

    def add(self, value: float, **labels: str) -> None:
        """Add to the value of the series with these further labels."""
        key = label_text({**self._labels, **labels})
        self._values[key] = self._values.get(key, 0.0) + value

    @property
    def used(self) -> bool:
        """Whether any value has been set."""
        return bool(self._values)

    def lines(self) -> Iterable[str]:
        """Yield the HELP, TYPE and sample lines."""
        yield f"# HELP {self.name} {self.text}"
        yield f"# TYPE {self.name} {self.kind}"
        for labels, value in self._values.items():
            yield f"{self.name}{labels} {float(value)}"


class Histogram:
    """A histogram that records any number of equal observations at once."""

    def __init__(self, name: str, text: str, *, bounds: tuple[float, ...], labels: Labels) -> None:
        self.name = name
        self.text = text
        self._labels = labels
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0
        self._bucket_labels = [label_text({**labels, "le": str(float(bound))}) for bound in bounds]
        self._bucket_labels.append(label_text({**labels, "le": "+Inf"}))

    def observe(self, value: float, count: int = 1) -> None:
        """Add `count` observations of this value."""
        self._counts[bisect_left(self._bounds, value)] += count
        self._sum += value * count

    @property
    def count(self) -> int:
        """The number of observations so far."""
        return sum(self._counts)

    def lines(self) -> Iterable[str]:
        """Yield the HELP, TYPE and sample lines."""
        yield f"# HELP {self.name} {self.text}"
        yield f"# TYPE {self.name} histogram"
        cumulative = 0
        for labels, count in zip(self._bucket_labels, self._counts, strict=True):
            cumulative += count
            yield f"{self.name}_bucket{labels} {float(cumulative)}"
        labels = label_text(self._labels)
        yield f"{self.name}_count{labels} {float(cumulative)}"
        yield f"{self.name}_sum{labels} {self._sum}"
