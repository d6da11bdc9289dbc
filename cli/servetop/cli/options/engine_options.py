"""The options of `servetop` that set EngineConfig and ConnectionConfig."""

from typing import Annotated

from servetop.cli.options import completions
from servetop.cli.options.declaration import Option, options_class
from servetop.cli.options.parsers import parse_command

ENGINE, CONNECTION = "Engine", "Connection"

EngineName = Annotated[
    str | None,
    Option(
        "--engine",
        "Engine to start, or the one at --url.",
        panel=ENGINE,
        unit="NAME",
        default="sim; detected with --url",
        complete=completions.engines,
    ),
]
Model = Annotated[
    str | None,
    Option(
        "--model",
        "Alias (llama-2-7b), Hugging Face name, or local path.",
        panel=ENGINE,
        unit="MODEL",
        default="llama-2-7b",
        complete=completions.models,
    ),
]
Url = Annotated[
    tuple[str, ...],
    Option(
        "--url",
        "Attach to the server at this URL; repeat for replicas, which receive requests in turn.",
        panel=ENGINE,
        unit="URL",
    ),
]
EngineCommand = Annotated[
    tuple[str, ...],
    Option(
        "--engine-command",
        "Command that starts the engine, instead of its usual one.",
        panel=ENGINE,
        unit="COMMAND",
        parse=parse_command,
    ),
]
ApiKeyEnv = Annotated[
    str | None,
    Option("--api-key-env", "Environment variable that holds the API key.", panel=ENGINE, unit="VARIABLE"),
]


@options_class
class EngineOptions:
    """The engine to start or to attach to."""

    engine: EngineName = None
    model: Model = None
    url: Url = ()
    front_door: Annotated[
        str | None,
        Option(
            "--front-door",
            "Send requests to this load balancer; each --url is a replica behind it, used for metrics only.",
            panel=ENGINE,
            unit="URL",
        ),
    ] = None
    metrics_url: Annotated[
        str | None,
        Option(
            "--metrics-url",
            "The engine's metrics page, or a Prometheus server that scrapes it, as in "
            "'http://prom:9090/?match={instance=\"gpu7:8000\"}'.",
            panel=ENGINE,
            unit="URL",
            default="the engine's usual page",
        ),
    ] = None
    port: Annotated[
        int | None,
        Option("--port", "Port of a started engine.", panel=ENGINE, default="a free one", minimum=1, maximum=65535),
    ] = None
    max_num_seqs: Annotated[
        int | None,
        Option("--max-num-seqs", "The engine's batch size limit.", panel=ENGINE, unit="SEQUENCES", minimum=1),
    ] = None
    engine_command: EngineCommand = ()
    launcher: Annotated[
        str | None,
        Option("--launcher", "Start the engine in a container.", panel=ENGINE, choices=("docker", "podman")),
    ] = None
    image: Annotated[
        str | None,
        Option("--image", "Container image.", panel=ENGINE, unit="IMAGE", default="the engine's official image"),
    ] = None
    start_timeout: Annotated[
        float,
        Option("--start-timeout", "Time limit for the engine to load.", panel=ENGINE, unit="SECONDS", minimum=1),
    ] = 1800.0
    attach_timeout: Annotated[
        float,
        Option(
            "--attach-timeout",
            "Time limit for the first response of a server at --url.",
            panel=ENGINE,
            unit="SECONDS",
            minimum=1,
        ),
    ] = 30.0
    api_key_env: ApiKeyEnv = None


@options_class
class ConnectionOptions:
    """How to reach a server at a URL; fields as in ConnectionConfig."""

    transport: Annotated[
        str,
        Option(
            "--transport",
            "HTTP client.",
            panel=CONNECTION,
            choices=("raw", "httpx"),
            default="raw; httpx with a proxy or a client certificate",
        ),
    ] = ""
    proxy: Annotated[
        str | None,
        Option(
            "--proxy",
            "Proxy, as in http://host:port.",
            panel=CONNECTION,
            unit="URL",
            default="HTTP_PROXY, HTTPS_PROXY, NO_PROXY",
        ),
    ] = None
    ca_cert: Annotated[
        str | None,
        Option("--ca-cert", "PEM file of further certificate authorities to trust.", panel=CONNECTION, unit="FILE"),
    ] = None
    client_cert: Annotated[
        str | None, Option("--client-cert", "PEM file with the client certificate.", panel=CONNECTION, unit="FILE")
    ] = None
    client_key: Annotated[
        str | None,
        Option("--client-key", "PEM file with its key, if separate.", panel=CONNECTION, unit="FILE"),
    ] = None
    insecure: Annotated[bool, Option("--insecure", "Accept any TLS certificate.", panel=CONNECTION)] = False
