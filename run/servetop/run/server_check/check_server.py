"""Attaches to a server, asks it over every endpoint, reads its metrics, and says which options a run needs."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence

from servetop.core.clock import MonotonicClock
from servetop.core.config import RunConfig, WorkloadConfig
from servetop.core.events import TokenSource
from servetop.engines.attach import FALLBACK, attach_engine
from servetop.engines.control.connection import route_to
from servetop.engines.control.credentials import api_key
from servetop.engines.handle import EngineHandle
from servetop.run.attached.find_format import SHORT_TEXT
from servetop.run.attached.request_format import RequestFormat
from servetop.run.attached.single_request import RequestTarget
from servetop.run.manifest.versions import servetop_version
from servetop.run.server_check.check_endpoint import TOKEN_IDS, check_endpoint, requests_for
from servetop.run.server_check.metrics_check import check_metrics
from servetop.run.server_check.server_report import EndpointCheck, ServerReport
from servetop.workload.request_headers import all_headers

Checked = tuple[EndpointCheck, RequestFormat]
_SHORTEST_TIMEOUT = 0.1


async def check_server(config: RunConfig) -> ServerReport:
    """Check the server at the URL of the configuration; EngineError if there is none to attach to.

    All requests together take at most twice `attach_timeout`.
    """
    engine_config, workload = config.engine, config.workload
    clock = MonotonicClock()
    handle = await attach_engine(engine_config, clock, headers=all_headers(workload, os.environ))
    try:
        until = clock.now() + 2 * engine_config.attach_timeout
        checked: list[Checked] = []
        unknown = handle.facts.name == FALLBACK
        target = await _target(handle, config)
        for wanted in requests_for(handle.engine, only=workload.endpoint, adapts=unknown):
            left = max(_SHORTEST_TIMEOUT, min(engine_config.attach_timeout, until - clock.now()))
            checked.append(await check_endpoint(target, wanted, workload, timeout=left))
        metrics = await check_metrics(handle)
    finally:
        await handle.stop()
    facts = handle.facts
    checks = tuple(check for check, _ in checked)
    options, remark = options_for(checked, workload, unknown=unknown)
    return ServerReport(
        servetop=servetop_version(),
        url=handle.url,
        engine=facts.name,
        title=facts.title,
        version=facts.version,
        model=facts.model,
        models=facts.models,
        max_model_len=facts.max_model_len,
        endpoints=checks,
        metrics=metrics,
        remarks=tuple(each for each in (handle.remark, remark, *_reading_remarks(checks)) if each),
        options=options,
    )


async def _target(handle: EngineHandle, config: RunConfig) -> RequestTarget:
    return RequestTarget(
        url=handle.url,
        model=handle.facts.model or "",
        api_key=api_key(config.engine, os.environ),
        headers=all_headers(config.workload, os.environ),
        connection=route_to(handle.url, config.engine.connection, os.environ).connection,
        token_ids=await handle.tokenize(SHORT_TEXT),
        continuous_usage=handle.continuous_usage,
    )


def options_for(checked: Sequence[Checked], workload: WorkloadConfig, *, unknown: bool) -> tuple[tuple[str, ...], str]:
    """Return the options that a run needs besides those given, and a remark on what no option can say.

    A run finds some formats of an unknown server by itself, but not if `--endpoint` is given.
    """
    answered = [each for each in checked if each[0].answered]
    if not answered:
        return (), ""
    ids_refused = checked[0][0].prompt == TOKEN_IDS and not checked[0][0].answered
    others = [each for each in answered if each[0].endpoint != checked[0][0].endpoint]
    if ids_refused and not unknown and not others:
        return (), "the server refuses token ids: give prompts as text, as with --dataset-name sonnet"
    check, form = others[0] if ids_refused and not unknown else answered[0]
    stream = ("--no-stream",) if "without a stream" in check.changes else ()
    usual = check is checked[0][0]
    if unknown and not workload.endpoint and (form.new_limit or (form.endpoint == "completions" and not usual)):
        return stream, f"a run finds out by itself to send requests to {form.description}"
    body = ("--extra-body", json.dumps(form.body_changes(workload.extra_body))) if form.without else ()
    endpoint = () if usual or form.endpoint == checked[0][1].endpoint else ("--endpoint", check.endpoint)
    return (*endpoint, *body, *stream), ""


def _reading_remarks(checks: Sequence[EndpointCheck]) -> list[str]:
    """Return what the reading of the responses means for a run's figures."""
    answered = [each for each in checks if each.answered]
    found = []
    if answered and not any(each.streamed for each in answered):
        found.append("responses arrive in one piece: TTFT is the time of the whole response, and there is no ITL")
    if answered and not any(each.token_source == TokenSource.USAGE for each in answered):
        found.append("the server counts no tokens: output tokens are its events, prompt tokens are estimated")
    return found
