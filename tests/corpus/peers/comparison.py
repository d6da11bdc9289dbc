"""Compares what one peer reads with the right readings of the corpus."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.corpus.corpus import Case
from tests.corpus.metrics_corpus import MetricsCase
from tests.corpus.metrics_rows import own_rows, reference_rows
from tests.corpus.peers.differences import (
    Difference,
    Kind,
    load_kinds,
    response_differences,
    unexplained,
    unneeded,
)
from tests.corpus.peers.peers import Peer, install
from tests.corpus.peers.readings import ResponseJob

METRICS_PEER = "prometheus-client"
"""Names the reference parser of metrics pages, which needs no environment of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerComparison:
    """The files of one corpus that a peer read, and what it reads otherwise."""

    title: str
    version: str
    corpus: str
    tried: int
    skipped: int
    differences: tuple[Difference, ...]
    kinds: tuple[Kind, ...]

    @property
    def same(self) -> int:
        """The number of files without a difference."""
        return self.tried - len({each.case for each in self.differences})

    def faults(self) -> Iterator[str]:
        """Yield a line for each difference without an explanation, and for each explanation without a difference."""
        for each in unexplained(self.differences, self.kinds):
            values = f"{each.field} {_short(each.found)}, right is {_short(each.right)}"
            yield f"{self.title} reads {self.corpus}/{each.case} otherwise: {values}"
        for kind, case in unneeded(self.differences, self.kinds):
            yield f"{self.title}: the explanation {kind.name} is not needed for {self.corpus}/{case}: remove it"


def _short(value: object) -> str:
    text = value if isinstance(value, str) else repr(value)
    text = " ".join(text.split())
    return repr(text if len(text) <= 160 else f"{text[:60]} … {text[-90:]}")


def compare_responses(peer: Peer, cases: Sequence[Case]) -> PeerComparison:
    """Let a peer read the responses; NotCompared if it cannot."""
    installed = install(peer)
    readings = installed.read([_job(case) for case in cases])
    differences = [each for case in cases for each in response_differences(case, readings[case.name])]
    skipped = sum(bool(reading.skipped) for reading in readings.values())
    return PeerComparison(
        title=peer.title,
        version=installed.version(),
        corpus="responses",
        tried=len(cases) - skipped,
        skipped=skipped,
        differences=tuple(differences),
        kinds=tuple(kind for kind in load_kinds(peer.name) if kind.corpus == "responses"),
    )


def compare_metrics(cases: Sequence[MetricsCase]) -> PeerComparison:
    """Read the metrics pages with prometheus_client, which the tests of the corpus use too."""
    differences = [
        Difference(case=case.name, field="rows", found=found, right=right)
        for case in cases
        if (found := reference_rows(case.page)) != (right := own_rows(case.page))
    ]
    return PeerComparison(
        title="prometheus_client",
        version=importlib.metadata.version("prometheus-client"),
        corpus="metrics",
        tried=len(cases),
        skipped=0,
        differences=tuple(differences),
        kinds=tuple(load_kinds(METRICS_PEER)),
    )


def _job(case: Case) -> ResponseJob:
    return ResponseJob(
        name=case.name,
        blocks=tuple(case.blocks),
        endpoint=case.endpoint,
        stream=case.stream,
        content_type=case.content_type,
    )
