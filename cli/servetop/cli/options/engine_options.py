"""The options of `servetop` that set EngineConfig and ConnectionConfig."""

import dataclasses
from collections.abc import Mapping
from functools import partial
from typing import Annotated

from servetop.cli.options import completions
from servetop.cli.options.declaration import Option, options_class
from servetop.cli.options.parsers import parse_command, parse_metrics_header_env

engine_option, connection_option = partial(Option, panel="Engine"), partial(Option, panel="Connection")

EngineName = Annotated[
    str | None,
    engine_option(
        "--engine",
        "Engine to start, or the one at --url.",
        brief="vllm, sglang, llama.cpp, sim, … (servetop engines)",
        unit="NAME",
        default="sim; detected with --url",
        complete=completions.engines,
    ),
]
Model = Annotated[
    str | None,
    engine_option(
        "--model",
        "Alias (llama-2-7b), Hugging Face name, or local path.",
        brief="Model to serve, or the one to ask for.",
        unit="MODEL",
        default="llama-2-7b",
        complete=completions.models,
    ),
]
Url = Annotated[
    tuple[str, ...],
    engine_option(
        "--url",
        "Attach to the server at this URL; repeat for replicas, which receive requests in turn.",
        brief="Attach to a server instead of starting one.",
        unit="URL",
    ),
]
EngineCommand = Annotated[
    tuple[str, ...],
    engine_option(
        "--engine-command",
        "Command that starts the engine, instead of its usual one.",
        unit="COMMAND",
        parse=parse_command,
    ),
]
ApiKeyEnv = Annotated[
    str | None,
    engine_option(
        "--api-key-env",
        "Environment variable that holds the API key.",
        brief="Environment variable with the API key.",
        unit="VARIABLE",
    ),
]
MetricsUrl = Annotated[
    str | None,
    engine_option(
        "--metrics-url",
        "The engine's metrics page, or a Prometheus server that scrapes it, as in "
        "'http://prom:9090/?match={instance=\"gpu7:8000\"}'.",
        unit="URL",
        default="the engine's usual page",
    ),
]
MetricsApiKeyEnv = Annotated[
    str | None,
    engine_option(
        "--metrics-api-key-env",
        "Environment variable that holds the API key of the server at --metrics-url.",
        unit="VARIABLE",
    ),
]
MetricsHeaderEnv = Annotated[
    Mapping[str, str],
    engine_option(
        "--metrics-header-env",
        "Header for the server at --metrics-url, its value read from an environment variable; repeat.",
        unit="NAME=VARIABLE",
        repeat=True,
        parse=parse_metrics_header_env,
    ),
]
AttachTimeout = Annotated[
    float,
    engine_option(
        "--attach-timeout", "Time limit for the first response of a server at --url.", unit="SECONDS", minimum=1
    ),
]


@options_class
class EngineOptions:
    """The engine to start or to attach to."""

    engine: EngineName = None
    model: Model = None
    url: Url = ()
    front_door: Annotated[
        str | None,
        engine_option(
            "--front-door",
            "Send requests to this load balancer; each --url is a replica behind it, used for metrics only.",
            unit="URL",
        ),
    ] = None
    metrics_url: MetricsUrl = None
    metrics_api_key_env: MetricsApiKeyEnv = None
    metrics_header_env: MetricsHeaderEnv = dataclasses.field(default_factory=dict)
    port: Annotated[
        int | None, engine_option("--port", "Port of a started engine.", default="a free one", minimum=1, maximum=65535)
    ] = None
    max_num_seqs: Annotated[
        int | None,
        engine_option(
            "--max-num-seqs",
            "The engine's batch size limit.",
            brief="The engine's batch size limit.",
            unit="SEQUENCES",
            minimum=1,
        ),
    ] = None
    engine_command: EngineCommand = ()
    launcher: Annotated[
        str | None, engine_option("--launcher", "Start the engine in a container.", choices=("docker", "podman"))
    ] = None
    image: Annotated[
        str | None, engine_option("--image", "Container image.", unit="IMAGE", default="the engine's official image")
    ] = None
    start_timeout: Annotated[
        float, engine_option("--start-timeout", "Time limit for the engine to load.", unit="SECONDS", minimum=1)
    ] = 1800.0
    attach_timeout: AttachTimeout = 30.0
    api_key_env: ApiKeyEnv = None


@options_class
class ConnectionOptions:
    """How to reach a server at a URL; fields as in ConnectionConfig."""

    transport: Annotated[
        str,
        connection_option(
            "--transport",
            "HTTP client.",
            choices=("raw", "httpx"),
            default="raw; httpx with a proxy or a client certificate",
        ),
    ] = ""
    proxy: Annotated[
        str | None,
        connection_option(
            "--proxy", "Proxy, as in http://host:port.", unit="URL", default="HTTP_PROXY, HTTPS_PROXY, NO_PROXY"
        ),
    ] = None
    ca_cert: Annotated[
        str | None, connection_option("--ca-cert", "Certificate authorities to trust in addition (PEM).", unit="FILE")
    ] = None
    client_cert: Annotated[str | None, connection_option("--client-cert", "Client certificate (PEM).", unit="FILE")] = (
        None
    )
    client_key: Annotated[
        str | None,
        connection_option("--client-key", "Key of the client certificate, if in a separate file (PEM).", unit="FILE"),
    ] = None
    insecure: Annotated[bool, connection_option("--insecure", "Do not verify TLS certificates.")] = False
