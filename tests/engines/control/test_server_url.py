"""Addresses of servers as users write them, and the paths of their requests."""

from __future__ import annotations

import pytest

from servetop.engines.control.server_url import ServerUrl

AZURE = "https://x.openai.azure.com/openai/deployments/gpt-4o"
VERSION = "?api-version=2024-06-01"
KUBERNETES = "https://k8s/api/v1/namespaces/n/services/llm:8000/proxy"


@pytest.mark.parametrize(
    ("text", "models", "metrics", "endpoint"),
    [
        ("gpu7:8000", "/v1/models", "/metrics", ""),
        ("http://gpu7:8000/v1/", "/v1/models", "/metrics", ""),
        ("http://h/proxy/7", "/proxy/7/v1/models", "/proxy/7/metrics", ""),
        ("http://h/api/paas/v4", "/api/paas/v4/models", "/api/paas/metrics", ""),
        ("http://h/api/paas/v4/chat/completions", "/api/paas/v4/models", "/api/paas/metrics", "chat"),
        ("http://h/v1beta/openai/", "/v1beta/openai/models", "/metrics", ""),
        ("http://h/v1/completions", "/v1/models", "/metrics", "completions"),
        ("http://h/v1/responses/", "/v1/models", "/metrics", "responses"),
        ("http://h/v1/models", "/v1/models", "/metrics", ""),
        ("http://h/metrics", "/v1/models", "/metrics", ""),
        ("http://h/chat/completions", "/models", "/metrics", "chat"),
        ("http://h/v2/models/ensemble/generate_stream", "/v1/models", "/metrics", "generate"),
        (f"{AZURE}/chat/completions{VERSION}", f"/openai/deployments/gpt-4o/models{VERSION}", None, "chat"),
    ],
)
def test_an_address_is_taken_whole(text: str, models: str, metrics: str | None, endpoint: str) -> None:
    for url in (ServerUrl.parse(text), ServerUrl.parse(ServerUrl.parse(text).text)):
        assert url.target("/v1/models") == models
        assert metrics is None or url.target("/metrics") == metrics
    assert ServerUrl.parse(text).endpoint == endpoint


def test_a_query_is_added_to_every_path_and_named_in_no_message() -> None:
    url = ServerUrl.parse("http://h/v1?code=secret")
    assert url.target("/metrics") == "/metrics?code=secret"
    assert url.target("/api/v1/query?query=up") == "/api/v1/query?query=up&code=secret"
    assert url.where("/metrics") == "http://h/metrics"


@pytest.mark.parametrize("text", ["gpu7:8000", "http://h/inference", KUBERNETES, f"{AZURE}{VERSION}"])
def test_an_ambiguous_address_has_a_second_reading_with_an_address_of_its_own(text: str) -> None:
    first = ServerUrl.parse(text)
    second = first.other
    assert second is not None
    assert second.api in (f"{first.api}/v1", first.api.removesuffix("/v1"))
    again = ServerUrl.parse(second.text)
    assert (again.api, again.prefix, again.query) == (second.api, second.prefix, second.query)


def test_the_endpoints_of_an_azure_deployment_follow_its_address() -> None:
    for url in (ServerUrl.parse(f"{AZURE}{VERSION}"), ServerUrl.parse(ServerUrl.parse(f"{AZURE}{VERSION}").text)):
        assert url.target("/v1/chat/completions") == f"/openai/deployments/gpt-4o/chat/completions{VERSION}"


@pytest.mark.parametrize("text", ["http://h/v1", "http://h/api/v3", "http://h/chat/completions"])
def test_an_address_with_a_version_or_an_endpoint_is_unambiguous(text: str) -> None:
    assert ServerUrl.parse(text).other is None


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("http://prom:9090/prometheus", "/prometheus/metrics"),
        ("http://h:9000/metrics", "/metrics"),
        ("http://h/engine/7/metrics/", "/engine/7/metrics"),
        ("http://prom:9090/api/v1/query", "/metrics"),
        ("https://m/v1/projects/p/location/global/prometheus", "/v1/projects/p/location/global/prometheus/metrics"),
    ],
)
def test_the_address_of_metrics_keeps_its_path_but_for_the_page(text: str, target: str) -> None:
    assert ServerUrl.page(text).target("/metrics") == target
