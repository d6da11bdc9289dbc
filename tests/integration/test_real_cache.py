"""The prefix cache of a real vLLM: emptied, warmed to an asked hit rate, and found out if it holds an earlier run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness import RAN, Servetop
from tests.integration.harness import ENVIRONMENT, Vllm, vllm_server
from tests.integration.real_engines import started

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]
LOAD = ("--num-prompts", "40", "--max-concurrency", "8", "--input-len", "320", "--output-len", "4", "--json")
BLOCK = 32


@pytest.fixture(scope="module")
def url(vllm: Vllm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A vLLM with a prefix cache and its development endpoints, which servetop did not start."""
    server = vllm_server(vllm, environment={**ENVIRONMENT, "VLLM_SERVER_DEV_MODE": "1"})
    with started(server, tmp_path_factory.mktemp("vllm") / "log") as engine:
        yield engine.url


def summary_of(servetop: Servetop, *words: str) -> dict[str, Any]:
    done = servetop(*words, *LOAD)
    assert done.code in RAN, done.err
    assert done.summary["completed"] == 40
    return done.summary


@pytest.mark.parametrize("rate", [0.25, 0.6, 0.9])
def test_vllm_counts_the_hit_rate_that_was_asked(servetop: Servetop, url: str, rate: float) -> None:
    varied = ("--random-range-ratio", "0.3", "--num-prefixes", "2")
    summary = summary_of(servetop, "--url", url, "--cache-hit-rate", str(rate), *varied)
    assert summary["server"]["prefix_cache_hit_rate"] == pytest.approx(rate, abs=0.01)
    assert (summary["server"]["prefix_cache_ideal_hit_rate"], summary["prefix_cache"]) == (rate, "warm, by reset")


def test_a_repeated_run_is_named_and_a_cold_one_finds_nothing(servetop: Servetop, url: str) -> None:
    summary_of(servetop, "--url", url, "--seed", "77")
    again = summary_of(servetop, "--url", url, "--seed", "77")
    assert again["server"]["prefix_cache_hit_rate"] > 0.85
    assert any("the cache held prompts of an earlier run" in reason for reason in again["trust"]["reasons"])
    cold = summary_of(servetop, "--url", url, "--seed", "77", "--prefix-cache", "cold")
    assert (cold["server"]["prefix_cache_hit_rate"], cold["prefix_cache"]) == (0.0, "cold, by reset")


def test_the_order_of_cold_cells_changes_no_hit_rate(servetop: Servetop, url: str, tmp_path: Path) -> None:
    shared = 3 * BLOCK
    expected = (40 - 3) * shared / (40 * (100 + shared))
    for order in ([2, 8], [8, 2]):
        file = tmp_path / "cells.toml"
        file.write_text(
            f'url = "{url}"\nmax_concurrency = {order}\nnum_prompts = 40\noutput_len = 4\nrandom_input_len = 100\n'
            f'random_prefix_len = {shared}\nnum_prefixes = 3\nprefix_cache = "cold"\n'
        )
        done = servetop("sweep", str(file), "--json")
        assert done.code in RAN, done.err
        found = {stage["max_concurrency"]: stage["server"]["prefix_cache_hit_rate"] for stage in done.summary["stages"]}
        assert found == {2: pytest.approx(expected, abs=0.01), 8: pytest.approx(expected, abs=0.01)}
