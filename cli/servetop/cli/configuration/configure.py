"""Builds a RunConfig from the options, and rejects everything that cannot work before anything starts."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence

from servetop.cli.configuration.stage_options import check, check_cooldown, describes_load, stages_of, with_warmup
from servetop.cli.configuration.workload_settings import prefix_cache_of, resolved, workload_config
from servetop.cli.options.config_file import ConfigFile, RecordedPlan, check_complete
from servetop.cli.options.engine_options import ConnectionOptions
from servetop.cli.options.load_options import LoadOptions
from servetop.cli.options.run_options import RepeatableOptions
from servetop.core.config import (
    STANDARD_PERCENTILES,
    ConnectionConfig,
    EngineConfig,
    RunConfig,
    StageConfig,
    WorkloadConfig,
)
from servetop.core.errors import UsageError
from servetop.core.same_fields import from_same_fields
from servetop.workload.request_headers import all_headers

OPENAI = ("completions", "chat", "responses")
OPENAI_ENGINES = ("sim", "vllm")
"""Engines known to serve the OpenAI API, so that most runs need not import their adapter here."""


def run_config(
    options: RepeatableOptions,
    engine_args: Sequence[str],
    file: ConfigFile | None = None,
    *,
    allow_redacted: bool = False,
) -> RunConfig:
    """Return the configuration that options describe; UsageError names the option that is wrong.

    `file` is the --config file that they are from; its engine arguments and stages apply where the command line gives
    none. A secret that a recording left out is an error, unless `allow_redacted`.
    """
    load, results, (workload, replay) = options.load, options.results, resolved(workload_config(options))
    plan = RecordedPlan() if file is None or describes_load(load) else file.plan
    stages = with_warmup(plan.stages or stages_of(load, replay), load.num_warmups, each_repeat=plan.restart is not None)
    _check_load(workload, stages, load=load, chosen=bool(plan.stages) or load.request_rate is not None)
    engine = engine_config(options, engine_args or (file.engine_args if file is not None else ()))
    config = from_same_fields(
        RunConfig,
        load,
        results,
        engine=engine,
        workload=dataclasses.replace(workload, endpoint=endpoint_of_config(engine, workload.endpoint)),
        stages=stages,
        prefix_cache=prefix_cache_of(load.prefix_cache, workload),
        thresholds=results.threshold,
        metric_percentiles=extra_percentiles(results.metric_percentiles, results.threshold, prices=results.price),
        prices=results.price,
    )
    if file is not None and not allow_redacted:
        check_complete(config)
    return plan.applied_to(config)


def _check_load(workload: WorkloadConfig, stages: tuple[StageConfig, ...], *, load: LoadOptions, chosen: bool) -> None:
    """UsageError for a load that cannot be sent; `chosen`: the user has given its rates."""
    check(workload, stages)
    if workload.dataset_path and not chosen:
        from servetop.workload.validation import check_trace_is_paced  # numpy: not for every start

        check_trace_is_paced(workload, stages)
    check_cooldown(load.cooldown, stages)
    all_headers(workload, os.environ)  # a variable that is not set is an error before anything is recorded


def endpoint_of_config(engine: EngineConfig, endpoint: str) -> str:
    """The given endpoint, else the one that the address names, as in `…/v1/chat/completions`, else the usual one."""
    address = engine.front_door or engine.url
    if not endpoint and address is not None:
        from servetop.engines.control.server_url import ServerUrl

        endpoint = ServerUrl.parse(address).endpoint
    return endpoint_at(engine.name, endpoint)


def endpoint_at(engine: str, endpoint: str) -> str:
    """Return the endpoint to use: the given one, else the engine's usual one; empty if only the server can tell.

    UsageError for one that the engine does not have.
    """
    if engine == "auto":
        if endpoint not in ("", *OPENAI, "generate"):
            raise UsageError(f"--endpoint {endpoint}: use {', '.join(OPENAI)} or generate")
        return endpoint
    if engine == "openai" and endpoint in ("", *OPENAI):
        return endpoint
    if engine in OPENAI_ENGINES and endpoint in ("", *OPENAI):
        return endpoint or OPENAI[0]
    from servetop.engines.dialects.dialect_registry import endpoint_of
    from servetop.engines.engine_registry import load_engine

    found = load_engine(engine)
    return endpoint_of(endpoint, found.endpoints, title=found.title)


def extra_percentiles(
    wanted: Sequence[float], thresholds: Sequence[str], *, prices: Sequence[str] = ()
) -> tuple[float, ...]:
    """Percentiles that are wanted or that a threshold needs, without the standard ones.

    UsageError for an invalid threshold, or one on a cost without a price, before the run rather than after it.
    """
    found = set(wanted)
    if thresholds:
        from servetop.analysis.checks import thresholds as conditions  # not needed by every start

        parsed = [conditions.parse_threshold(text) for text in thresholds]
        found |= set(conditions.percentiles_needed(parsed))
        if not prices and (priced := [each for each in parsed if conditions.needs_a_price(each)]):
            raise UsageError(f"--threshold {priced[0]}: add what the server costs, as in --price 2.5/h")
    return tuple(sorted(found - set(STANDARD_PERCENTILES)))


def engine_config(options: RepeatableOptions, engine_args: Sequence[str]) -> EngineConfig:
    """Return the configuration of the engine; with a URL nothing is started, so options that start it are an error."""
    given = options.engine
    if given.front_door and not given.url:
        raise UsageError("--front-door needs the --url of each server behind it, to read its metrics")
    if given.url and (engine_args or given.engine_command):
        raise UsageError("--url attaches to a running server: leave out --engine-command and arguments after --")
    config = from_same_fields(
        EngineConfig,
        given,
        name=given.engine or ("auto" if given.url else "sim"),
        model=given.model or ("" if given.url else "llama-2-7b"),
        url=given.url[0] if given.url else None,
        more_urls=given.url[1:],
        extra_args=tuple(engine_args),
        command=given.engine_command,
        connection=_connection_config(options.connection, attached=bool(given.url)),
        launcher=given.launcher or "",
        image=given.image or "",
    )
    if config.metrics_url:
        from servetop.engines.metrics.prometheus_server import MetricsAddress

        MetricsAddress.parse(config.metrics_url)
    check_launcher(config)
    if config.api_key_env or config.metrics_api_key_env or config.metrics_header_env:
        from servetop.engines.control.credentials import api_key, check_metrics_credentials

        api_key(config, os.environ)  # a missing key is an error before anything is recorded
        check_metrics_credentials(config, os.environ)
    return config


def _connection_config(options: ConnectionOptions, *, attached: bool) -> ConnectionConfig:
    connection = from_same_fields(ConnectionConfig, options)
    if connection != ConnectionConfig():
        from servetop.engines.control.connection import check_connection  # not for every start

        check_connection(connection, attached=attached)
    return connection


def check_launcher(config: EngineConfig) -> None:
    """UsageError for a launcher that has nothing to start, and for an image without a launcher."""
    if config.image and not config.launcher:
        raise UsageError("--image needs a container: add --launcher docker or --launcher podman")
    if config.launcher and config.url:
        raise UsageError("--url attaches to a running server: leave out --launcher and --image")
    if config.launcher and config.name == "sim":
        raise UsageError("the simulator does not run in a container: set --engine, or leave out --launcher")
