"""All metrics of a live run, from what its recorder is given; their text is computed when a scraper asks for it."""

from __future__ import annotations

import math
import platform
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from servetop.core.config import RunConfig
from servetop.core.events import StageChange
from servetop.core.interfaces.run_source import EngineFacts
from servetop.core.text.known_secrets import redactor_of
from servetop.core.tick import LoadGauges
from servetop.recordings.write.tick_transaction import TickTransaction
from servetop.run.exporter import metric_registry as registry
from servetop.run.exporter.client_totals import ClientTotals
from servetop.run.exporter.exposition import exposition
from servetop.run.exporter.live_metric import LiveMetric, MetricFamily, MetricSample, state_set
from servetop.run.exporter.run_judge import RunJudge
from servetop.run.exporter.server_gauges import ServerGauges
from servetop.run.outcome import RunPhase

_OPERATIONS = {"chat": "chat", "responses": "chat", "generate": "generate_content"}
"""Names of the conventions for endpoints; all others complete texts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunIdentity:
    """What distinguishes one run from others, besides its configuration."""

    recording: str
    """Name of the recording."""
    version: str
    """Version of servetop."""
    began_at: float
    """Unix time."""


class RunMetrics:
    """Takes every tick of a run, and returns its metrics as text."""

    def __init__(self, config: RunConfig, identity: RunIdentity) -> None:
        self._config, self._identity = config, identity
        self._redactor = redactor_of(config)
        self._facts: EngineFacts | None = None
        self._gauges = LoadGauges()
        self._stage: StageChange | None = None
        self._client = ClientTotals(streamed=config.workload.stream)
        self._servers = ServerGauges(redactor=self._redactor)
        self._judge = RunJudge(config)
        self.phase: Callable[[], RunPhase] = lambda: RunPhase.BOOTING
        """Returns the phase of the run."""

    def set_engine(self, facts: EngineFacts) -> None:
        """Take what is known of the engine, once it is ready and after each restart."""
        self._facts = facts
        self._client.set_labels(self._gen_ai_labels(facts))
        self._servers.set_engine(facts)
        self._judge.set_engine(facts)

    def take(self, transaction: TickTransaction) -> None:
        """Take what a tick adds to the recording."""
        tick = transaction.tick
        if tick is not None:
            self._gauges = tick.client.gauges
        self._stage = transaction.stages[-1] if transaction.stages else self._stage
        self._client.add(None if tick is None else tick.client, transaction.requests, transaction.stages)
        self._servers.add(transaction)
        self._judge.add(transaction)

    def text(self, *, openmetrics: bool) -> str:
        """Return the metrics in the format of Prometheus, or as OpenMetrics."""
        return exposition(self.families(), openmetrics=openmetrics)

    def families(self) -> Iterator[MetricFamily]:
        """Yield all metrics with their present values."""
        yield from self._of_the_run()
        if self._config.watch is None:
            yield from self._of_the_load()
            yield from self._client.families()
        yield from self._servers.families()
        yield from self._of_the_judgement()

    def _of_the_run(self) -> Iterator[MetricFamily]:
        versions = {"version": self._identity.version, "python_version": platform.python_version()}
        yield _one(registry.BUILD, 1, versions)
        facts, text = self._facts, self._redactor.text
        yield _one(
            registry.RUN,
            1,
            {
                "mode": _mode(self._config),
                "engine": self._config.engine.known_as if facts is None else facts.name,
                "engine_version": "" if facts is None else facts.version or "",
                "model": text(self._model(facts)),
                "label": text(self._config.label),
                "recording": text(self._identity.recording),
            },
        )
        yield _one(registry.STARTED, self._identity.began_at)
        yield MetricFamily(metric=registry.PHASE, samples=state_set(registry.PHASE, self.phase().value))

    def _of_the_load(self) -> Iterator[MetricFamily]:
        if self._stage is not None:
            labels = {"stage": str(self._stage.index), "stage_label": self._redactor.text(self._stage.label)}
            yield _one(registry.STAGE_INFO, 1, labels)
        for metric, name in registry.LOAD_GAUGES.items():
            value = getattr(self._gauges, name)
            if value is not None and not math.isinf(value):
                yield _one(metric, int(value) if isinstance(value, bool) else value)
        limits = self._config.goodput.items()
        samples = [MetricSample(value=limit, labels={"objective": metric}) for metric, limit in limits]
        yield MetricFamily(metric=registry.OBJECTIVE, samples=samples)

    def _of_the_judgement(self) -> Iterator[MetricFamily]:
        """Return trust and verdict; a watch of several servers has a state of each instead."""
        several = self._config.watch is not None and self._config.watch.several
        found = None if several else self._judge.judgement()
        if found is None:
            return
        yield MetricFamily(metric=registry.VERDICT, samples=state_set(registry.VERDICT, found.bottleneck.value))
        if self._config.watch is None:
            yield MetricFamily(metric=registry.TRUST, samples=state_set(registry.TRUST, found.trust.value))
            for metric, value in (
                (registry.LITTLES_LAW, found.littles_law_error),
                (registry.TOKEN_ERROR, found.token_error),
            ):
                if not math.isnan(value):
                    yield _one(metric, value)

    def _model(self, facts: EngineFacts | None) -> str:
        """Return the model that requests are sent to; several, with commas between them, of a mix."""
        mix = ",".join(self._config.workload.model_mix)
        return mix or (None if facts is None else facts.model) or self._config.engine.model

    def _gen_ai_labels(self, facts: EngineFacts) -> Mapping[str, str]:
        operation = _OPERATIONS.get(self._config.workload.endpoint, "text_completion")
        values = (operation, facts.name, self._redactor.text(self._model(facts)))
        return dict(zip(registry.GEN_AI_LABELS, values, strict=True))


def _one(metric: LiveMetric, value: float, labels: Mapping[str, str] | None = None) -> MetricFamily:
    return MetricFamily(metric=metric, samples=[MetricSample(value=value, labels=labels or {})])


def _mode(config: RunConfig) -> str:
    if config.watch is not None:
        return "watch"
    if config.search is not None:
        return "search"
    return "sweep" if config.drain_at_stages else "run"
