"""Loads the metrics pages of the corpus, and reads them as a scrape does: from the bytes of pages to a sample."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from servetop.engines.control.control_client import HttpResult, HttpResults
from servetop.engines.engine_registry import load_engine
from servetop.engines.metrics.metrics_source import MetricsScraper

PAGES = Path(__file__).parent / "metrics"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsCase:
    """One metrics page and its right reading (metrics/README.md)."""

    name: str
    page: bytes
    engine: str
    path: str
    models: frozenset[str]
    further: Mapping[str, bytes]
    other_models: Sequence[str]
    values: Mapping[str, float] | None


@dataclass(frozen=True, slots=True)
class _StoredPages:
    """A source of pages that were stored; all others are missing."""

    bodies: Mapping[str, bytes]
    url: str = "http://127.0.0.1"

    def where(self, path: str) -> str:
        return f"{self.url}{path}"

    async def fetch(self, paths: Sequence[str]) -> HttpResults:
        missing = HttpResult(404, b"", error="HTTP 404")
        return {path: HttpResult(200, self.bodies[path]) if path in self.bodies else missing for path in paths}

    async def close(self) -> None:
        """Has nothing to close."""


def load_metrics_cases() -> list[MetricsCase]:
    """Return all cases, by name."""
    return [_load(path) for path in sorted(PAGES.glob("*.json"))]


def _load(path: Path) -> MetricsCase:
    facts: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return MetricsCase(
        name=path.stem,
        page=path.with_suffix(".page").read_bytes(),
        engine=facts["engine"],
        path=facts.get("path", "/metrics"),
        models=frozenset(facts.get("models", ())),
        further={name: text.encode() for name, text in facts.get("more", {}).items()},
        other_models=facts.get("other_models", ()),
        values=facts["values"],
    )


def read_page(case: MetricsCase, page: bytes) -> tuple[Mapping[str, float] | None, str]:
    """Return the exported figures by name, None without a sample, and the error of the page."""
    reader = load_engine(case.engine).metrics()
    assert reader is not None
    source = _StoredPages({**case.further, case.path: page})
    results = asyncio.run(MetricsScraper(reader, source, models=case.models).fetch())
    bodies = {path: result.body for path, result in results.items() if result.ok}
    sample = reader.sample(bodies, start=1.0, end=1.5)
    if sample is None:
        return None, results[case.path].error or ""
    found = {name: value for name, value in asdict(sample).items() if value is not None}
    return {name: value for name, value in found.items() if not name.startswith("scrape_")}, ""
