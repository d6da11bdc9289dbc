"""Keys and headers from the environment: those of a server, and those of the server with its metrics."""

from __future__ import annotations

from collections.abc import Mapping

from servetop.core.config import ConnectionConfig, EngineConfig
from servetop.core.errors import UsageError
from servetop.engines.control.api_key import key_from
from servetop.engines.control.control_client import ServerClient
from servetop.engines.control.server_url import ServerUrl
from servetop.workload.request_headers import header_values


def api_key(config: EngineConfig, environ: Mapping[str, str]) -> str | None:
    """Return the key from the variable named by `api_key_env`; UsageError if it is not set."""
    return key_from(config.api_key_env, environ, option="--api-key-env")


def check_metrics_credentials(config: EngineConfig, environ: Mapping[str, str]) -> None:
    """Raise UsageError if a variable with a key or header of the metrics is not set, or if there is no URL for it."""
    given = config.metrics_api_key_env or config.metrics_header_env
    if given and config.metrics_url is None:
        raise UsageError("--metrics-api-key-env and --metrics-header-env are for the server at --metrics-url: give it")
    metrics_credentials(config, environ)


def metrics_client(
    url: ServerUrl,
    client: ServerClient,
    *,
    config: EngineConfig,
    environ: Mapping[str, str],
    connection: ConnectionConfig | None,
) -> ServerClient:
    """Return the client of the metrics server at `url`, with its own credentials, else those of its origin."""
    if not config.metrics_api_key_env and not config.metrics_header_env:
        return client.at(url, connection=connection)
    return prometheus_client(url, config=config, environ=environ, connection=connection)


def prometheus_client(
    url: ServerUrl, *, config: EngineConfig, environ: Mapping[str, str], connection: ConnectionConfig | None
) -> ServerClient:
    """Return the client of a server of metrics with the credentials for it, if there are any; UsageError if unset."""
    key, headers = metrics_credentials(config, environ)
    return ServerClient(url, api_key=key, headers=headers, connection=connection)


def metrics_credentials(config: EngineConfig, environ: Mapping[str, str]) -> tuple[str | None, Mapping[str, str]]:
    """Return key and headers of the metrics; UsageError if a variable is not set."""
    key = key_from(config.metrics_api_key_env, environ, option="--metrics-api-key-env")
    return key, header_values(config.metrics_header_env, environ, option="--metrics-header-env")
