"""Cold, warm and contaminated prefix caches, by whole commands at simulated servers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness import RAN, Servetop, answers, printed_url, wait_for

LOAD = ("--num-prompts", "40", "--max-concurrency", "8", "--input-len", "200", "--output-len", "4", "--json")
ENGINE = ("--engine-profile", "vllm-current", "--time-scale", "0.2")

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A simulated vLLM with a prefix cache."""
    with contextlib.ExitStack() as running:
        folder = Servetop(tmp_path_factory.mktemp("none"))
        process = running.enter_context(folder.started("serve", "--port", "0", *ENGINE))
        url = printed_url(process)
        wait_for(lambda: answers(f"{url}/health"), seconds=30, what="the simulator")
        yield url
        process.terminate()
        process.communicate(timeout=120)


def summary_of(servetop: Servetop, *words: str) -> dict[str, Any]:
    done = servetop(*words, *LOAD)
    assert done.code in RAN, done.err
    assert done.summary["completed"] == 40
    return done.summary


def named(summary: dict[str, Any]) -> bool:
    return any("cache hit rate" in reason for reason in summary["trust"]["reasons"])


def test_a_repeated_run_is_named_and_a_cold_one_finds_nothing(servetop: Servetop, url: str) -> None:
    first, again = (summary_of(servetop, "--url", url, "--seed", "77") for _ in range(2))
    assert (first["server"]["prefix_cache_hit_rate"], named(first)) == (0.0, False)
    assert again["server"]["prefix_cache_hit_rate"] > 0.9
    assert named(again)
    reset = summary_of(servetop, "--url", url, "--seed", "77", "--prefix-cache", "cold")
    assert (reset["prefix_cache"], reset["server"]["prefix_cache_hit_rate"], named(reset)) == (
        "cold, by reset",
        0,
        False,
    )
    elsewhere = ("--engine", "openai", "--metrics-url", url)  # servetop knows no reset of it
    salted = summary_of(servetop, "--url", url, *elsewhere, "--seed", "77", "--prefix-cache", "cold", "--workers", "2")
    assert (salted["prefix_cache"], salted["server"]["prefix_cache_hit_rate"]) == ("cold, by salt", 0.0)
    assert salted["total_input_tokens"] == 40 * 200


@pytest.mark.parametrize("elsewhere", [False, True])
def test_an_asked_hit_rate_is_found_after_a_reset_and_with_a_salt(
    servetop: Servetop, url: str, elsewhere: bool
) -> None:
    engine = ("--engine", "openai", "--metrics-url", url) if elsewhere else ()
    summary = summary_of(servetop, "--url", url, *engine, "--cache-hit-rate", "0.6", "--num-prefixes", "2")
    assert summary["server"]["prefix_cache_hit_rate"] == pytest.approx(0.6, abs=0.01)
    assert summary["prefix_cache"] == ("warm, by salt" if elsewhere else "warm, by reset")


def test_the_order_of_cold_cells_changes_no_hit_rate(servetop: Servetop, url: str, tmp_path: Path) -> None:
    rates = []
    for order in ([2, 8], [8, 2]):
        file = tmp_path / "cells.toml"
        file.write_text(
            f'url = "{url}"\nmax_concurrency = {order}\nnum_prompts = 40\noutput_len = 4\nrandom_input_len = 100\n'
            'random_prefix_len = 96\nnum_prefixes = 3\nprefix_cache = "cold"\n'
        )
        done = servetop("sweep", str(file), "--json")
        assert done.code in RAN, done.err
        stages = done.summary["stages"]
        assert [stage["server"]["prefix_cache_queries"] for stage in stages] == [40 * 196] * 2
        rates.append({stage["max_concurrency"]: stage["server"]["prefix_cache_hit_rate"] for stage in stages})
        ideal = [stage["server"]["prefix_cache_ideal_hit_rate"] for stage in stages]
        assert ideal == pytest.approx([37 * 96 / (40 * 196)] * 2)
    assert rates[0] == rates[1] == {2: pytest.approx(37 * 96 / (40 * 196)), 8: pytest.approx(37 * 96 / (40 * 196))}
