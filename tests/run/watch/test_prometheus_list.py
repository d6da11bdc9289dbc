"""The servers of a watch are the instances that a Prometheus server matches, and follow it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from servetop.core.clock import MonotonicClock
from servetop.core.config import EngineConfig, RunConfig
from servetop.core.config_values.watch_config import WatchConfig
from servetop.core.errors import EngineError, UsageError
from servetop.run.watch import address_list
from servetop.run.watch.address_list import AddressList
from servetop.run.watch.prometheus_list import PrometheusList, is_prometheus_list
from tests.watched_server import watched_server


class Api(Mapping[str, str]):
    """The pages of a Prometheus server whose instances a test changes."""

    def __init__(self) -> None:
        self.instances: list[Any] = []
        self.answer: str | None = None
        self.queries: list[str] = []

    def __getitem__(self, path: str) -> str:
        parts = urlsplit(path)
        assert parts.path == "/api/v1/query"
        self.queries += parse_qs(parts.query)["query"]
        rows = [{"metric": {"instance": each}, "value": [0, "1"]} for each in self.instances]
        found = {"status": "success", "data": {"resultType": "vector", "result": rows}}
        return json.dumps(found) if self.answer is None else self.answer

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def get(self, path: str, default: Any = None) -> Any:
        return self[path]


def listed(url: str, selector: str = '{job="vllm"}', config: EngineConfig | None = None) -> list[str]:
    async def ask() -> list[str]:
        found = PrometheusList(f"{url}/?match={selector}", config or EngineConfig())
        try:
            return [each.url for each in await found.addresses()]
        finally:
            await found.close()

    return asyncio.run(ask())


def test_each_instance_is_a_server_once_and_what_is_no_address_is_left_out() -> None:
    with watched_server() as server:
        server.pages = api = Api()
        api.instances = ["gpu8:8000", "gpu7:8000", "gpu8:8000", "", None, "a b", "https://llm.example"]
        assert listed(server.url) == ["http://gpu7:8000", "http://gpu8:8000", "https://llm.example"]
        assert api.queries == ['group by (instance) ({job="vllm"})']
        assert {method for method, _ in server.seen} == {"GET"}


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (None, r'knows no instance for the query group by \(instance\) \(\{job="vllm"\}\): check the selector'),
        ("<html>", "knows no instance"),
        ('{"data": [1]}', "knows no instance"),
    ],
)
def test_a_server_without_a_list_is_refused(answer: str | None, reason: str) -> None:
    with watched_server() as server:
        server.pages = api = Api()
        api.answer = answer
        with pytest.raises(EngineError, match=reason):
            listed(server.url)


def test_one_that_wants_a_key_gets_that_of_the_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROMETHEUS_KEY", "abc")
    with watched_server() as server:
        server.pages, server.key = Api(), "abc"
        with pytest.raises(EngineError, match=r"\(HTTP 401: it wants credentials: give --metrics-api-key-env"):
            listed(server.url)
        server.pages.instances = ["gpu7:8000"]
        assert listed(server.url, config=EngineConfig(metrics_api_key_env="PROMETHEUS_KEY")) == ["http://gpu7:8000"]


def test_one_that_does_not_answer_is_named() -> None:
    with watched_server() as server:
        url = server.url
    with pytest.raises(EngineError, match=f"no list of servers from the Prometheus server at {url}"):
        listed(url)


def test_a_selector_needs_its_braces() -> None:
    assert is_prometheus_list('http://prom:9090/?match={job="vllm"}')
    assert is_prometheus_list("http://prom:9090?match[]={a='b'}")
    assert not is_prometheus_list("http://gpu7:8000/v1?api-version=2024-06-01")
    with pytest.raises(UsageError, match=r"^'http://prom:9090/\?match=up': the part after the \? must be a selector"):
        PrometheusList("http://prom:9090/?match=up", EngineConfig())


def test_the_list_follows_and_stays_while_the_server_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(address_list, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(address_list, "RESOLVE_SECONDS", 0.0)

    async def follow(url: str, api: Api) -> list[object]:
        config = RunConfig(
            engine=EngineConfig(name="auto", model="", url=url),
            watch=WatchConfig(several=True, prometheus=f'{url}/?match={{job="vllm"}}'),
        )
        followed = AddressList(replace(config, stages=()), MonotonicClock())
        found: list[object] = [[each.name for each in await followed.first()]]
        for instances in (["a:1"], ["a:1", "b:1"], [], ["b:1"]):
            api.instances = instances
            changed = await followed.changed()
            found.append(None if changed is None else [each.name for each in changed])
            found.append(followed.trouble.partition(" for the query")[0].partition("knows ")[2])
        await followed.close()
        return found

    with watched_server() as server:
        server.pages = api = Api()
        api.instances = ["a:1"]
        assert asyncio.run(follow(server.url, api)) == [
            ["a:1"], None, "", ["a:1", "b:1"], "", None, "no instance", ["b:1"], "",
        ]  # fmt: skip
