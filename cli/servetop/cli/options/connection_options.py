"""The options that say how a server at a URL is reached."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from servetop.core.config import ConnectionConfig

CONNECTION = "Connection"

Transport = Annotated[
    str | None,
    typer.Option(
        "--transport",
        help="raw or httpx. (default: raw; httpx with a proxy or a client certificate)",
        rich_help_panel=CONNECTION,
    ),
]
Proxy = Annotated[
    str | None,
    typer.Option(
        "--proxy", help="http://host:port. (default: HTTP_PROXY, HTTPS_PROXY, NO_PROXY)", rich_help_panel=CONNECTION
    ),
]
CaCert = Annotated[
    str | None, typer.Option("--ca-cert", help="PEM file of authorities to trust too.", rich_help_panel=CONNECTION)
]
ClientCert = Annotated[
    str | None, typer.Option("--client-cert", help="PEM file that says who we are.", rich_help_panel=CONNECTION)
]
ClientKey = Annotated[
    str | None, typer.Option("--client-key", help="Its key, if in another file.", rich_help_panel=CONNECTION)
]
Insecure = Annotated[bool, typer.Option("--insecure", help="Believe any TLS certificate.", rich_help_panel=CONNECTION)]


def connection_config(options: Mapping[str, Any]) -> ConnectionConfig:
    """As typed; UsageError for what cannot work."""
    from servetop.core.config import ConnectionConfig

    names = ("proxy", "ca_cert", "client_cert", "client_key", "insecure")
    connection = ConnectionConfig(transport=options["transport"] or "", **{name: options[name] for name in names})
    if connection != ConnectionConfig():
        from servetop.engines.control.connection import check_connection  # not for every start

        check_connection(connection, attached=bool(options["url"]))
    return connection
