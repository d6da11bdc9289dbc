"""Servers at free ports of this machine that stand for those of the docs, such as http://gpu7:8000."""

from __future__ import annotations

import asyncio
import contextlib
import re
import threading
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from tests.cli.test_otlp_endpoint import collector
from tests.engines.prometheus_stand_in import PrometheusStandIn
from tests.harness import Servetop, answers, printed_url, wait_for

KEY = "sk-test"
KEYS = dict.fromkeys(("KEY", "EXAMPLE_KEY", "GW_KEY"), KEY)
"""The variables with API keys in the docs."""
DIALECTS: Mapping[str, str] = {
    "deepspeed-mii": "mii", "llama.cpp": "llama.cpp", "sglang": "sglang", "tensorrt-llm": "trtllm", "tgi": "tgi",
    "transformers": "transformers", "triton-tensorrt-llm": "triton",
}  # fmt: skip
"""The simulator's dialect on the page of an engine; elsewhere it is vLLM's."""
_ENGINES = {"gpu7": 0, "gpu8": 1, "router": 2, "api.example.com": 0, "gw": 0, "vllm-headless": 0, "127.0.0.1": 0}
_HOST = re.compile(r"(?P<scheme>https?://)?\b(?P<host>gpu7|gpu8|router|api\.example\.com|gw|vllm-headless"
                   r"|prom|otel|127\.0\.0\.1)(?P<port>:\d+|(?=/))")  # fmt: skip


class DocsServers:
    """Starts a server when a line needs it, and ends all at once."""

    def __init__(self, folder: Path, running: contextlib.ExitStack) -> None:
        self._servetop = Servetop(folder, KEYS)
        self._running = running
        self._urls: dict[tuple[str, ...], str] = {}

    def replaced(self, line: str, page: str) -> str:
        """A line with the addresses of servers that are here; nothing else of it is changed."""
        return _HOST.sub(lambda found: self._address(found, line, page), line)

    def _address(self, found: re.Match[str], line: str, page: str) -> str:
        match found["host"]:
            case "prom":
                url = self._prometheus(self._engine(0, line, page))
            case "otel":
                url = self._once(("otel",), lambda: self._running.enter_context(collector())[0])
            case host if found["port"] == ":9002":  # Triton's page of metrics
                url = self._engine(_ENGINES[host], line, page, part="metrics")
            case host:
                url = self._engine(_ENGINES[host], line, page)
        if found["host"] == "vllm-headless":
            url = url.replace("127.0.0.1", "localhost")
        return url if found["scheme"] else url.removeprefix("http://")

    def _engine(self, number: int, line: str, page: str, part: str = "requests") -> str:
        """The address of a simulated server with the model, the key and the dialect that a line needs."""
        dialect = DIALECTS.get(Path(page).stem, "vllm")
        model = re.search(r"(?<!--engine sim )--model (\S+)", line)
        words: tuple[str, ...] = ("--dialect", dialect, "--time-scale", "0.2")
        words += ("--served-model-name", model[1]) if model and dialect != "triton" else ()  # which names its own
        words += ("--api-key-env", "KEY") if "--api-key-env" in line else ()
        key = (str(number), *words)
        if key not in self._urls:
            process = self._running.enter_context(self._servetop.started("serve", "--port", "0", *words))
            assert process.stderr is not None
            lines = iter(process.stderr)
            self._urls[(*key, "metrics")] = _metrics_address(lines) if dialect == "triton" else ""
            url = self._urls[key] = printed_url(process)
            wait_for(lambda: answers(f"{url}/health") or answers(f"{url}/v2/health/ready"), seconds=30, what="a server")
        return self._urls[(*key, "metrics") if part == "metrics" else key]

    def _prometheus(self, engine: str) -> str:
        """The address of a stand-in for a Prometheus server that scrapes an engine."""
        return self._once(("prom", engine), lambda: self._running.enter_context(scraping(engine)))

    def _once(self, key: tuple[str, ...], start: Callable[[], str]) -> str:
        if key not in self._urls:
            self._urls[key] = start()
        return self._urls[key]

    def write_list(self, path: Path) -> None:
        """Write the file of docs/how-to/watch.md that lists two servers."""
        text = "# servers.txt\ngpu7 = http://gpu7:8000\nhttp://gpu8:8000\n"
        path.write_text(self.replaced(text, ""), encoding="utf-8")


def _metrics_address(lines: Iterator[str]) -> str:
    return next(line for line in lines if "Metrics on " in line).split()[-1].removesuffix("/metrics")


@contextlib.contextmanager
def scraping(engine: str) -> Iterator[str]:
    """The address of a stand-in for a Prometheus server, on a thread of its own, that scrapes an engine."""
    stand_in = PrometheusStandIn(job="vllm")
    loop = asyncio.new_event_loop()
    ended = threading.Event()

    async def scrape() -> None:
        await stand_in.start()
        while not ended.is_set():
            with urllib.request.urlopen(f"{engine}/metrics", timeout=30) as response:
                stand_in.now += 0.5
                stand_in.scrape(response.read().decode(), engine.removeprefix("http://"))
            await asyncio.sleep(0.5)
        await stand_in.stop()

    thread = threading.Thread(target=lambda: loop.run_until_complete(scrape()))
    thread.start()
    try:
        wait_for(lambda: stand_in.samples, seconds=30, what="the first scrape")
        yield stand_in.url
    finally:
        ended.set()
        thread.join()
        loop.close()
