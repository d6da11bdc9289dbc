"""The load in the log of a real vLLM, taken with `servetop shape`, and replayed to two configurations of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.harness import RAN, Servetop
from tests.integration.harness import ENVIRONMENT, Vllm, skip_unless_all, vllm_server
from tests.integration.real_engines import started

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

LOAD = ("--request-rate", "4", "--num-prompts", "24", "--input-len", "40", "--random-prefix-len", "32")
COUNT, OUTPUT = 24, 24
LOGGED = "--enable-log-requests"
VERBOSE = {**ENVIRONMENT, "VLLM_LOGGING_LEVEL": "DEBUG"}


def send(servetop: Servetop, url: str) -> None:
    """Send the load whose log is read."""
    sent = servetop("--url", url, *LOAD, "--output-len", str(OUTPUT), "--num-warmups", "0", "--headless")
    assert sent.code in RAN, sent.err


def test_the_load_in_vllms_log_is_the_load_that_was_sent(vllm: Vllm, servetop: Servetop, tmp_path: Path) -> None:
    log, target = tmp_path / "vllm.log", tmp_path / "shape.jsonl"
    with started(vllm_server(vllm, LOGGED, environment=VERBOSE), log) as engine:
        send(servetop, engine.url)
    done = servetop("shape", str(log), "-o", str(target), "--block-tokens", "16", "--json")
    assert done.code == 0, done.err
    report = done.summary
    assert [each["format"] for each in report["sources"]] == ["vllm"]
    rows = [json.loads(line) for line in target.read_text().splitlines()][-COUNT:]  # checks of the server precede them
    assert [row["input_length"] for row in rows] == [72] * COUNT
    first = rows[0]["hash_ids"][:2]
    assert all(row["hash_ids"][:2] == first for row in rows)
    assert len({row["hash_ids"][-1] for row in rows}) == COUNT
    assert all(row["output_length"] == 128 for row in rows)  # vLLM 0.32 logs no output of streamed completions
    assert {each["what"] for each in report["missing"]} == {"output lengths", "sessions", "exact times"}
    assert report["output_tokens"]["max"] == 128
    assert report["input_tokens"]["max"] == 72  # requests to the tokenizer are left out


@pytest.mark.timeout(1200)
def test_the_logged_load_tells_which_of_two_configurations_is_slower(
    vllm: Vllm, servetop: Servetop, tmp_path: Path
) -> None:
    skip_unless_all("a series of pairs with two servers")
    log, target, metric = tmp_path / "a.log", tmp_path / "shape.jsonl", "mean_e2el_ms"
    one = vllm_server(vllm, "--max-num-seqs", "1")
    with (
        started(one, tmp_path / "b.log") as b,
        started(vllm_server(vllm, LOGGED, environment=VERBOSE), log) as a,  # last: its log begins with its check
    ):
        send(servetop, a.url)
        shaped = servetop("shape", str(log), "-o", str(target), "--block-tokens", "16", "--output-len", "16")
        assert shaped.code == 0, shaped.err
        load = ("--dataset-name", "trace", "--dataset-path", str(target), "--ignore-eos")
        sides = ("--a", f"--url {a.url}", "--b", f"--url {b.url}", "--metric", metric)
        series = ("--budget", "12m", "--into", str(tmp_path / "pairs"), "--json")
        done = servetop("run-pairs", *load, *sides, *series, timeout=900)
    assert done.code == 0, done.err
    (found,) = done.summary["metrics"]
    assert (found["measured"]["key"], found["measured"]["verdict"]) == (metric, "worse")
