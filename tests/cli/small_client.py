"""A load generator of a few lines that writes the result of `vllm bench serve`: `small_client.py URL FILE [MODE]`.

It probes the model list, warms up with one request, and then sends ten at a fixed rate. Modes: `fail` exits with 3
after two requests, `hang` starts a child and sends requests for ever, `idle` sends none.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

COUNT, GAP, TOKENS = 10, 0.03, 6
BODY = {"prompt": list(range(20)), "max_tokens": TOKENS, "ignore_eos": True, "stream": True}


def request(address: str, row: dict[str, Any]) -> None:
    connection = http.client.HTTPConnection(address, timeout=60)
    row["start"] = time.perf_counter()
    connection.request("POST", "/v1/completions", json.dumps(BODY), {"Content-Type": "application/json"})
    response, times = connection.getresponse(), []
    while line := response.readline():
        if line.startswith(b"data: {"):
            times.append(time.perf_counter())
    row["times"] = times
    connection.close()


def result(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "date": time.strftime("%Y%m%d-%H%M%S"), "backend": "openai", "model_id": "m", "tokenizer_id": "m",
        "num_prompts": len(rows), "request_rate": 1 / GAP, "completed": len(rows),
        "input_lens": [20 for _ in rows], "output_lens": [len(row["times"]) for row in rows],
        "start_times": [row["start"] for row in rows],
        "ttfts": [row["times"][0] - row["start"] for row in rows],
        "itls": [[b - a for a, b in zip(row["times"], row["times"][1:], strict=False)] for row in rows],
        "errors": ["" for _ in rows],
    }  # fmt: skip


def main(url: str, file: str, mode: str = "", *_: str) -> int:
    address = urlsplit(url).netloc
    if mode == "idle":
        return 0
    if mode == "hang":
        print("child", subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]).pid, flush=True)
        while True:
            request(address, {})
    probe = http.client.HTTPConnection(address, timeout=60)
    probe.request("GET", "/v1/models")
    probe.getresponse().read()
    request(address, {})
    if mode == "fail":
        request(address, {})
        print("no tokenizer: it is gated", file=sys.stderr)
        return 3
    rows: list[dict[str, Any]] = [{} for _ in range(COUNT)]
    threads = [threading.Thread(target=request, args=(address, row)) for row in rows]
    start = time.perf_counter() + GAP
    for number, thread in enumerate(threads):
        time.sleep(max(0.0, start + number * GAP - time.perf_counter()))
        thread.start()
    for thread in threads:
        thread.join()
    Path(file).write_text(json.dumps(result(rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
