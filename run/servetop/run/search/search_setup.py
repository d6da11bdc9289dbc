"""Makes a search from its configuration: objectives, plan and the first load."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from servetop.core.config import RunConfig, StageConfig
from servetop.core.config_values.search_config import SEARCHED_LOADS, SearchConfig
from servetop.core.errors import RecordingError, UsageError
from servetop.core.units import MAX_REQUEST_RATE
from servetop.recordings.read.reader import RecordingReader
from servetop.run.search.evidence_reader import EvidenceReader
from servetop.run.search.objective_text import Tiers, parse_tiers
from servetop.run.search.search_answer import TierAnswer
from servetop.run.search.search_evidence import Evidence, NextProbe, SearchLimits
from servetop.run.search.search_plan import SearchPlan

ALL_MAY_FAIL = "100%"
"""Limit of failed requests in a search: failures are evidence."""
LEAST_BUDGET = 10.0
"""Seconds."""


class Planner(Protocol):
    """What decides which loads a search keeps."""

    def next(self, evidence: Evidence) -> NextProbe | None:
        """Return the load to keep next; None if the search is over."""
        ...

    def answers(self, evidence: Evidence) -> tuple[TierAnswer, ...]:
        """Return the answer of each tier."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SearchSetup:
    """A search that can be driven, and evaluated."""

    search: SearchConfig
    tiers: Tiers
    goodput: Mapping[str, float]
    planner: Planner

    @classmethod
    def of(cls, config: RunConfig) -> SearchSetup:
        """Return the search of a configuration; UsageError for one that cannot work, or without a search."""
        search = config.search
        if search is None:
            raise UsageError("this run is not a search: add objectives with --slo")
        _check(search)
        tiers = parse_tiers(search.slo, goodput=config.goodput)
        limits = SearchLimits(
            low=search.low,
            high=search.high,
            budget=search.budget,
            concurrency=search.concurrency,
            precision=search.precision,
            prior=search.prior,
        )
        planner = SearchPlan(tiers.members, tiers.objectives, limits)
        return cls(search=search, tiers=tiers, goodput=config.goodput, planner=planner)

    def evidence(self, reader: RecordingReader) -> Evidence:
        """Return the evidence of a whole recording."""
        return self.evidence_reader(reader).read()

    def evidence_reader(self, reader: RecordingReader) -> EvidenceReader:
        """Return a reader of the evidence of a growing recording."""
        return EvidenceReader(
            reader,
            self.tiers.objectives,
            goodput=self.goodput,
            concurrency=self.search.concurrency,
            since=self.search.since or 0.0,
        )

    def load(self, probe: NextProbe) -> float:
        """Return the load of a probe as it is sent: requests in flight are whole."""
        return float(max(1, round(probe.load))) if self.search.concurrency else probe.load

    def stage(self, probe: NextProbe) -> StageConfig:
        """Return the stage of a probe."""
        if self.search.concurrency:
            return StageConfig(max_concurrency=int(self.load(probe)), duration=probe.seconds)
        return StageConfig(request_rate=probe.load, duration=probe.seconds)


def _check(search: SearchConfig) -> None:
    if search.over not in SEARCHED_LOADS:
        raise UsageError(f"--over {search.over}: use {' or '.join(SEARCHED_LOADS)}")
    check_loads(search)
    if search.concurrency and (search.low < 1 or search.low % 1 or search.high % 1):
        raise UsageError("--low and --high are requests in flight: use whole numbers from 1")
    if search.high > MAX_REQUEST_RATE:
        raise UsageError(
            f"--high {search.high:g} is beyond what one machine can send: give at most {MAX_REQUEST_RATE:,.0f}"
        )
    if search.budget < LEAST_BUDGET:
        raise UsageError(f"--budget {search.budget:g} s is too short for one load: give at least {LEAST_BUDGET:g}s")
    if not 0 < search.precision < 1:
        raise UsageError(f"--precision {search.precision:g}: use a share above 0 and below 1, such as 5%")
    if search.prior is not None and not 0 < search.prior < math.inf:
        raise UsageError(f"--prior {search.prior:g} is not a load: give a number above 0, or --no-prior")


def check_loads(search: SearchConfig) -> None:
    """UsageError if there is no load between the least and the largest."""
    for option, load in (("--low", search.low), ("--high", search.high)):
        if not 0 < load < math.inf:
            raise UsageError(f"{option} {load:g} is not a load: give a number above 0")
    if search.low >= search.high:
        raise UsageError(
            f"--low {search.low:g} and --high {search.high:g} leave no load to try: give --low below --high"
        )


def with_first_load(config: RunConfig) -> RunConfig:
    """Return the configuration of a search with the stage that it begins with, after its warm-up.

    Failed requests do not fail the run: they are evidence.
    """
    config = dataclasses.replace(config, max_failures=ALL_MAY_FAIL)
    setup = SearchSetup.of(config)
    return _planned(config, setup, setup.planner.next(no_evidence(len(setup.tiers.objectives))))


def no_evidence(objectives: int) -> Evidence:
    """Return the evidence of a search before its first load."""
    import numpy as np

    nothing = np.empty(0)
    return Evidence(
        probes=(), due=nothing, done=nothing, counted=(nothing,) * objectives, missed=(nothing,) * objectives
    )


def _planned(config: RunConfig, setup: SearchSetup, probe: NextProbe | None) -> RunConfig:
    warmups = tuple(stage for stage in config.stages if stage.warmup)
    return dataclasses.replace(config, stages=warmups if probe is None else (*warmups, setup.stage(probe)))


def resumed_search(recording: Path) -> RunConfig:
    """Return the configuration that continues an interrupted search: without stages if it is over.

    RecordingError if the recording is live, or not one of a search.
    """
    with contextlib.closing(RecordingReader.open(recording)) as reader:
        config = reader.header.config
        if config.search is None:
            raise RecordingError(f"{recording} is not the recording of a search: give one that servetop search wrote")
        if reader.is_live():
            raise RecordingError(f"{recording} is still being written: watch it with servetop replay {recording}")
        setup = SearchSetup.of(config)
        probe = setup.planner.next(setup.evidence(reader))
    return _planned(config, setup, probe)
