"""The options of `servetop watch`: those of attaching to a server, and of a recording."""

import dataclasses
from collections.abc import Mapping
from functools import partial
from typing import Annotated

from servetop.cli.options.declaration import Argument, Option, options_class
from servetop.cli.options.doctor_options import ServerEngine
from servetop.cli.options.engine_options import (
    ApiKeyEnv,
    ConnectionOptions,
    MetricsApiKeyEnv,
    MetricsHeaderEnv,
    MetricsUrl,
    engine_option,
)
from servetop.cli.options.output_options import OutputOptions, output_option
from servetop.cli.options.parsers import parse_metadata
from servetop.cli.options.request_options import HeaderEnv, Headers
from servetop.cli.options.run_options import NoRecord
from servetop.core.units import parse_seconds

watch_option = partial(Option, panel="Watch")
REFUSED_BY_WATCHES = frozenset({"against"})
"""Options of a recording that a watch refuses: it sends no load that another one could be compared with."""


@options_class
class WatchOptions:
    """The options of `servetop watch`; names are those of RunOptions, for which they are read, except `duration`."""

    servers: Annotated[
        tuple[str, ...],
        Argument(
            "URL|FILE",
            "The server to watch, or several, with names if you like (a=http://gpu7:8000), a file that lists them, one "
            'a line, or a Prometheus server that knows them (http://prom:9090/?match={job="vllm"}). They are only '
            "read: metrics, health, list of models.",
        ),
    ]
    all_addresses: Annotated[
        bool,
        watch_option(
            "--all-addresses",
            "Watch a server at each IP address of a server's name, resolved again every 10 s.",
        ),
    ] = False
    duration: Annotated[
        float | None,
        watch_option(
            "--duration",
            "End after this time: seconds, or 90s, 5m, 1h.",
            unit="TIME",
            default="when it is stopped",
            parse=parse_seconds,
        ),
    ] = None
    threshold: Annotated[
        tuple[str, ...],
        watch_option(
            "--threshold",
            "Exit with 99 if a server breaks this condition, as in 'kv_usage<90%', 'waiting<=10' or 'ttft_p90<500ms', "
            "and with 98 if that cannot be decided; repeat.",
            unit="CONDITION",
        ),
    ] = ()
    hold: Annotated[
        float,
        watch_option(
            "--for",
            "How long in a row a --threshold has to fail to count as broken: seconds, or 90s, 5m, 1h.",
            unit="TIME",
            parse=parse_seconds,
        ),
    ] = 10.0
    on_episode: Annotated[
        str,
        watch_option(
            "--on-episode",
            "Run this when an overload or an outage of a server begins, and when it ends: no shell, 30 s at most; "
            "SERVETOP_EPISODE_STATE, _KIND, _SERVER, _URL, _SINCE and _TEXT describe it.",
            unit="CMD",
        ),
    ] = ""
    keep: Annotated[
        float | None,
        watch_option(
            "--keep",
            "Drop from the recording what is older than this: seconds, or 12h, 7d.",
            unit="TIME",
            default="everything is kept",
            parse=parse_seconds,
        ),
    ] = None
    engine: ServerEngine = None
    model: Annotated[
        str | None,
        engine_option(
            "--model",
            "Served model whose metrics are read, where a page has those of several.",
            unit="MODEL",
            default="the first that the server lists",
        ),
    ] = None
    max_num_seqs: Annotated[
        int | None,
        engine_option(
            "--max-num-seqs",
            "The batch size limit that the server runs with, if it does not export it (vLLM): needed to judge whether "
            "it is batch-bound. It is never set.",
            unit="SEQUENCES",
            default="as exported",
            minimum=1,
        ),
    ] = None
    metrics_url: MetricsUrl = None
    metrics_api_key_env: MetricsApiKeyEnv = None
    metrics_header_env: MetricsHeaderEnv = dataclasses.field(default_factory=dict)
    attach_timeout: Annotated[
        float,
        engine_option(
            "--attach-timeout", "Time limit for the first response of each server.", unit="SECONDS", minimum=1
        ),
    ] = 30.0
    api_key_env: ApiKeyEnv = None
    connection: ConnectionOptions = ConnectionOptions()
    header: Headers = dataclasses.field(default_factory=dict)
    header_env: HeaderEnv = dataclasses.field(default_factory=dict)
    label: Annotated[str, output_option("--label", "Name of the watch.", unit="TEXT")] = ""
    metadata: Annotated[
        Mapping[str, str],
        output_option(
            "--metadata", "Pair to store with the watch; repeat.", unit="KEY=VALUE", repeat=True, parse=parse_metadata
        ),
    ] = dataclasses.field(default_factory=dict)
    output: OutputOptions = OutputOptions()
    no_record: NoRecord = False
