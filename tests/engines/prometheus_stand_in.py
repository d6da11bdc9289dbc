"""Answers the queries of Prometheus' HTTP API that servetop sends, from the pages that it has scraped."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs, urlsplit

from prometheus_client.parser import text_string_to_metric_families

Sample = tuple[dict[str, str], float, str]
"""Labels with `__name__`, the time of the scrape, the value as text."""

_SELECTOR = re.compile(
    r"(?:(?P<count>count by \(__name__\) \()|(?P<group>group by \(instance\) \())?"
    r"\{(?P<matchers>.*)\}(?:\[(?P<seconds>\d+)s\])?(?(count)\))(?(group)\))"
)
_LOOKBACK = 300.0
_MATCHER = re.compile(r'(\w+)(=~|!=|=)"((?:[^"\\]|\\.)*)"')


class PrometheusStandIn:
    """`now` is its clock, in Unix seconds; `scrape` keeps a page's samples as Prometheus would."""

    def __init__(self, job: str = "llm") -> None:
        self.job = job
        self.now = 1_700_000_000.0
        self.samples: list[Sample] = []
        self.queries: list[str] = []
        self.ended: set[str] = set()
        """Instances whose last scrape failed: an instant query has their series no more, a range selector still has."""
        self.key = ""
        """API key without which all answers are HTTP 401; empty: none is needed."""
        self.is_away = False
        """Whether it answers HTTP 503, as while it starts."""
        self.url = ""
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    def scrape(self, page: str, instance: str) -> None:
        for family in text_string_to_metric_families(page):
            for sample in family.samples:
                labels = {"__name__": sample.name, "instance": instance, "job": self.job, **sample.labels}
                self.samples.append((labels, self.now, repr(sample.value)))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                target = urlsplit(head.split(" ")[1])
                if self.key and f"bearer {self.key}" not in head.lower():
                    status, answer = 401, dict[str, Any]()
                else:
                    status, answer = self._answer(target.path, parse_qs(target.query).get("query", [""])[0])
                body = json.dumps(answer).encode()
                writer.write(b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body))
                await writer.drain()
        writer.close()

    def _answer(self, path: str, query: str) -> tuple[int, dict[str, Any]]:
        if self.is_away:
            return 503, {"status": "error", "errorType": "unavailable", "error": "Service Unavailable"}
        if path != "/api/v1/query":
            return 404, {"status": "error", "errorType": "not_found", "error": "page not found"}
        self.queries.append(query)
        if query == "time()":
            result: dict[str, Any] = {"resultType": "scalar", "result": [self.now, str(self.now)]}
            return 200, {"status": "success", "data": result}
        selector = _SELECTOR.fullmatch(query)
        if selector is None or _MATCHER.sub("", selector["matchers"]).strip(","):
            words = 'invalid parameter "query": 1:1: parse error: unexpected character'
            return 400, {"status": "error", "errorType": "bad_data", "error": words}
        rows = self._matrix(_MATCHER.findall(selector["matchers"]), float(selector["seconds"] or _LOOKBACK))
        if selector["seconds"] is None:
            rows = [row for row in rows if row["metric"]["instance"] not in self.ended]
        if selector["group"]:
            instances = dict.fromkeys(row["metric"]["instance"] for row in rows)
            vector = [{"metric": {"instance": each}, "value": [self.now, "1"]} for each in instances]
            return 200, {"status": "success", "data": {"resultType": "vector", "result": vector}}
        if selector["seconds"] is not None:
            return 200, {"status": "success", "data": {"resultType": "matrix", "result": rows}}
        if selector["count"]:
            counts = Counter(row["metric"]["__name__"] for row in rows)
            vector = [{"metric": {"__name__": name}, "value": [self.now, f"{n}"]} for name, n in counts.items()]
        else:
            vector = [{"metric": row["metric"], "value": [self.now, row["values"][-1][1]]} for row in rows]
        return 200, {"status": "success", "data": {"resultType": "vector", "result": vector}}

    def _matrix(self, matchers: list[tuple[str, str, str]], seconds: float) -> list[dict[str, Any]]:
        rows: dict[str, dict[str, Any]] = {}
        for labels, at, value in self.samples:
            if self.now - seconds < at <= self.now and all(_matches(labels, *matcher) for matcher in matchers):
                row = rows.setdefault(json.dumps(labels, sort_keys=True), {"metric": labels, "values": []})
                row["values"].append([at, value])
        return list(rows.values())


def _matches(labels: dict[str, str], name: str, operator: str, text: str) -> bool:
    value = labels.get(name, "")
    if operator == "=~":
        return re.fullmatch(text, value) is not None
    return (value == text) == (operator == "=")
