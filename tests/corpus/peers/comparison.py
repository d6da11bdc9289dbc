"""Compares what one peer reads with the right readings of the corpus."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from tests.corpus.corpus import Case
from tests.corpus.data_corpus import DataCase
from tests.corpus.metrics_corpus import MetricsCase
from tests.corpus.metrics_rows import own_rows, reference_rows
from tests.corpus.peers.data_differences import data_differences
from tests.corpus.peers.data_readings import DataJob, DataPeerReading
from tests.corpus.peers.differences import (
    Difference,
    Kind,
    load_kinds,
    response_differences,
    unexplained,
    unneeded,
)
from tests.corpus.peers.peers import InstalledPeer, Peer, install
from tests.corpus.peers.readings import PeerReading, ResponseJob

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
    readings = installed.read("responses", [_job(case) for case in cases], PeerReading)
    differences = [each for case in cases for each in response_differences(case, readings[case.name])]
    return _comparison(installed, "responses", readings.values(), differences)


def compare_data(peer: Peer, cases: Sequence[DataCase]) -> PeerComparison:
    """Let a peer read the data files; NotCompared if it cannot."""
    installed = install(peer)
    readings = installed.read("data", [_data_job(case) for case in cases], DataPeerReading)
    differences = [each for case in cases for each in data_differences(case, readings[case.name])]
    return _comparison(installed, "data", readings.values(), differences)


def _comparison(
    installed: InstalledPeer,
    corpus: str,
    readings: Collection[PeerReading | DataPeerReading],
    differences: Sequence[Difference],
) -> PeerComparison:
    skipped = sum(bool(reading.skipped) for reading in readings)
    return PeerComparison(
        title=installed.peer.title,
        version=installed.version(),
        corpus=corpus,
        tried=len(readings) - skipped,
        skipped=skipped,
        differences=tuple(differences),
        kinds=load_kinds(installed.peer.name, corpus),
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
        kinds=load_kinds(METRICS_PEER, "metrics"),
    )


def _data_job(case: DataCase) -> DataJob:
    return DataJob(
        name=case.name,
        body=case.file_body,
        dataset="" if "column" in case.facts else _dataset(case),  # the peers have no such option
        outputs=any(case.facts.get("outputs", ())),
    )


def _dataset(case: DataCase) -> str:
    return str(case.facts.get("dataset") or next(iter(case.facts.get("names", ())), ""))


def _job(case: Case) -> ResponseJob:
    return ResponseJob(
        name=case.name,
        blocks=tuple(case.blocks),
        endpoint=case.endpoint,
        stream=case.stream,
        content_type=case.content_type,
    )
