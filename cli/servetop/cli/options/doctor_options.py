"""The options of `servetop doctor`: those of attaching to a server."""

import dataclasses
from typing import Annotated

from servetop.cli.options import completions
from servetop.cli.options.declaration import Argument, options_class
from servetop.cli.options.engine_options import (
    ApiKeyEnv,
    AttachTimeout,
    ConnectionOptions,
    MetricsApiKeyEnv,
    MetricsHeaderEnv,
    MetricsUrl,
    engine_option,
)
from servetop.cli.options.output_options import AsJson
from servetop.cli.options.request_options import EndpointName, ExtraBody, HeaderEnv, Headers

ServerEngine = Annotated[
    str | None,
    engine_option(
        "--engine",
        "Engine that serves at URL.",
        unit="NAME",
        default="detected",
        complete=completions.engines,
    ),
]
ServedModel = Annotated[
    str | None,
    engine_option("--model", "Name of the model to ask for.", unit="MODEL", default="the first that the server lists"),
]


@options_class
class DoctorOptions:
    """The options of `servetop doctor`; names are those of RunOptions, for which they are read."""

    server: Annotated[
        str | None,
        Argument("URL", "A server to ask one short question over each endpoint. (default: check this machine)"),
    ] = None
    engine: ServerEngine = None
    model: ServedModel = None
    metrics_url: MetricsUrl = None
    metrics_api_key_env: MetricsApiKeyEnv = None
    metrics_header_env: MetricsHeaderEnv = dataclasses.field(default_factory=dict)
    attach_timeout: AttachTimeout = 30.0
    api_key_env: ApiKeyEnv = None
    connection: ConnectionOptions = ConnectionOptions()
    endpoint: EndpointName = ""
    extra_body: ExtraBody = dataclasses.field(default_factory=dict)
    header: Headers = dataclasses.field(default_factory=dict)
    header_env: HeaderEnv = dataclasses.field(default_factory=dict)
    as_json: AsJson = False
