"""Attaches to a server that is only watched: what can be seen of it, however much of it servetop knows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

from servetop.core.clock import Clock
from servetop.core.config import EngineConfig, to_data
from servetop.core.errors import EngineError
from servetop.core.interfaces.run_source import EngineFacts
from servetop.core.text.shorten import cut_short
from servetop.engines.control.control_client import HttpResult, HttpResults, ServerClient
from servetop.engines.control.model_list import model_names
from servetop.engines.control.retry_delay import PageRetries
from servetop.engines.engine import Engine
from servetop.engines.handle import EngineHandle
from servetop.engines.metrics.exported_tables import recorded_table
from servetop.engines.metrics.metrics_reader import GAUGES
from servetop.engines.metrics.metrics_source import MetricsScraper
from servetop.engines.metrics.model_rows import related_models
from servetop.engines.metrics.unknown_metrics import UnknownMetrics, unknown_specs
from servetop.engines.watching.health_check import HEALTH_EXPORTED, HealthAnswer, HealthCheck

_NAMES_SHOWN = 4
_LONGEST_NAME = 60
_MODEL_NAMES = re.compile(rb'[{,]model_name="([^"\n]{1,200})"')


@dataclass(frozen=True, slots=True)
class AttachedServer:
    """A server whose engine is recognised."""

    engine: Engine
    facts: EngineFacts
    client: ServerClient
    scraper: MetricsScraper | None
    _: KW_ONLY
    is_known: bool
    """Whether it is an engine of its own adapter, not any OpenAI-compatible server."""
    remark: str
    probed: HttpResults
    """Pages by which the engine was recognised."""


def watched_models(listed: object, related: frozenset[str], *, config: EngineConfig) -> frozenset[str]:
    """Return the models whose rows count for a watch: those of one that is given, else all of the server.

    The server's own page has no other models; one at `--metrics-url` may have those of several servers.
    """
    if config.model:
        return related
    if config.metrics_url is None:
        return frozenset()
    return related.union(*(related_models(name, listed) for name in model_names(listed)))


async def watched_handle(server: AttachedServer, clock: Clock, *, config: EngineConfig) -> EngineHandle:
    """Return the handle of a watched server; EngineError if it has nothing of an engine.

    Metrics of an unknown engine are sampled by their own names; without metrics its health is sampled.
    """
    try:
        facts, remark = with_batch_limit(server.facts, config.max_num_seqs)
        server = _remarked(replace(server, facts=facts), remark)
        if server.facts.not_exported != GAUGES:
            return _handle(_with_models(server, _probed_page(server) or await _first_page(server.scraper)), clock)
        page = await _first_page(server.scraper)
        if not server.is_known and page.ok and (specs := unknown_specs(page.body)):
            exported = tuple(to_data(spec) for spec in specs)
            return _handle(_of_unknown_engine(server, exported), clock)
        return await _without_metrics(server, clock, page)
    except BaseException:
        await server.client.close()
        raise


def _probed_page(server: AttachedServer) -> HttpResult | None:
    """Return the metrics page of the server itself, which was read to recognise it; None if it is elsewhere."""
    if server.scraper is None or server.scraper.pages.url != server.client.url:
        return None
    return server.probed.get(server.scraper.reader.paths[0])


async def _first_page(scraper: MetricsScraper | None) -> HttpResult:
    if scraper is None:
        return HttpResult(error="it has no metrics page")
    return (await scraper.fetch())[scraper.reader.paths[0]]


def _handle(server: AttachedServer, clock: Clock) -> EngineHandle:
    handle = EngineHandle(server.engine, server.facts, client=server.client, clock=clock, scraper=server.scraper)
    handle.remark, handle.retries = server.remark, PageRetries()
    return handle


def with_batch_limit(facts: EngineFacts, limit: int | None) -> tuple[EngineFacts, str]:
    """Return the facts with the batch limit that the user gives, because not every engine exports it, and a remark.

    What the engine exports counts first, which is the remark; else that is empty.
    """
    exported = facts.max_num_seqs
    if limit is None or limit == exported:
        return facts, ""
    if exported is not None:
        return facts, f"its batch limit is {exported}, which counts instead of --max-num-seqs {limit}"
    return replace(facts, max_num_seqs=limit), ""


def page_models(page: HttpResult) -> list[str]:
    """Return the names of the models in the labels of a metrics page, each once."""
    return list(dict.fromkeys(map(_plain, _MODEL_NAMES.findall(page.body)))) if page.ok else []


def _with_models(server: AttachedServer, page: HttpResult) -> AttachedServer:
    """Say once that the page has several models, all of which count."""
    names = page_models(page)
    if len(names) < 2 or (server.scraper is not None and server.scraper.models):
        return server
    shown = _listed(names)
    text = f"its metrics are those of {len(names)} models, {shown}: counts are sums, KV usage is a mean"
    text = f"{text}; --model selects one"
    return _remarked(replace(server, facts=replace(server.facts, model=shown)), text)


def _of_unknown_engine(server: AttachedServer, exported: tuple[Any, ...]) -> AttachedServer:
    """Read the metrics by their own names."""
    assert server.scraper is not None
    names = _listed(list(dict.fromkeys(re.split("[ ,]", spec["name"])[0] for spec in exported)))
    text = f"metrics of an unknown engine ({names}) are shown by their own names, and limits are not judged"
    reader = UnknownMetrics(server.scraper.reader.paths[0])
    facts = replace(server.facts, exported=exported)
    return _remarked(replace(server, facts=facts, scraper=replace(server.scraper, reader=reader)), text)


async def _without_metrics(server: AttachedServer, clock: Clock, page: HttpResult) -> EngineHandle:
    """Sample the health of a server without metrics, and say what can be seen."""
    health = HealthCheck(server.client, server.engine.ready_path, clock)
    answer = await health.ask()
    if not (server.is_known or server.facts.models or answer.is_healthy):
        raise EngineError(
            f"{server.client.url} has no metrics, no list of models and no health check ({answer.text}), so it is no "
            "engine that can be watched: check the address, or give --metrics-url"
        )
    facts = replace(server.facts, exported=(to_data(HEALTH_EXPORTED), *recorded_table(server.engine)))
    reads_later = server.is_known or bool(page.error) or server.facts.url != _source(server)
    scraper = server.scraper if reads_later else None
    server = _remarked(replace(server, facts=facts, scraper=scraper), _seen(server, answer, page))
    handle = _handle(server, clock)
    handle.health = health
    return handle


def _source(server: AttachedServer) -> str:
    return "" if server.scraper is None else server.scraper.pages.url


def _seen(server: AttachedServer, answer: HealthAnswer, page: HttpResult) -> str:
    """Return what is seen of a server without metrics, and what to do, in one sentence."""
    facts, known = server.facts, server.engine.metrics_off_help
    name = " ".join(filter(None, (facts.title, facts.version)))
    serves = f", serves {_listed(facts.models)}" if facts.models else ""
    path = "" if server.scraper is None else f"{server.scraper.reader.paths[0]}: "
    why = page.error or (f"HTTP {page.status}" if not page.ok else "none that servetop knows")
    advice = known if server.is_known and known else "turn them on, or give their address with --metrics-url"
    verb = "answers" if answer.is_given else "does not answer its health check"
    seen = f"{name} {verb} ({answer.text}){serves}"
    return f"{seen}, but no metrics are read ({path}{why}), so limits are not judged: {advice}"


def _remarked(server: AttachedServer, text: str) -> AttachedServer:
    return replace(server, remark="; ".join(filter(None, (server.remark, text))))


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(cut_short(" ".join(name.split()), _LONGEST_NAME) for name in names[:_NAMES_SHOWN])
    return f"{shown} and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else shown


def _plain(name: bytes) -> str:
    return name.decode("utf-8", errors="replace")
