"""A watch of a real vLLM under the load of another client."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.harness import RAN, Servetop, wait_for
from tests.integration.harness import ENVIRONMENT, counters
from tests.watched_server import watching

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

LOAD = ("--max-concurrency", "24", "--num-prompts", "96", "--input-len", "12", "--output-len", "100", "--ignore-eos")


def test_the_load_of_another_client_on_vllm_is_counted_to_the_token(
    scarce_vllm: str, servetop: Servetop, tmp_path: Path
) -> None:
    recording = tmp_path / "watch.servetop"
    with servetop.started("watch", scarce_vllm, "--headless", "--json", "--record", str(recording)) as watch:
        wait_for(lambda: watching(recording), seconds=60, what="the first metrics page")
        before = counters(scarce_vllm)
        load = Servetop(tmp_path / "load", ENVIRONMENT)("--url", scarce_vllm, *LOAD, "--json")
        assert load.code in RAN, load.err
        after = counters(scarce_vllm)
        watch.send_signal(signal.SIGINT)
        out, err = watch.communicate(timeout=120)
    assert watch.returncode == 0, err
    summary = Servetop(tmp_path)("summary", str(recording), "--json").summary
    figures = {"generation_tokens": "vllm:generation_tokens_total", "prompt_tokens": "vllm:prompt_tokens_total",
               "preemptions": "vllm:num_preemptions_total"}  # fmt: skip
    counted = {figure: after[counter] - before[counter] for figure, counter in figures.items()}
    assert {figure: summary["server"][figure] for figure in figures} == counted
    assert counted["generation_tokens"] == load.summary["total_output_tokens"]
    assert summary["watched"]["requests"] == load.summary["completed"]
    assert summary["backend"] == "vllm"
    assert out.startswith("{")
