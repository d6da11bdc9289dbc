"""`servetop engines` tells what the adapters say, and nothing else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from servetop.engines.capabilities import capabilities, exported
from servetop.engines.metrics import GAUGES
from servetop.engines.registry import engine_names, load_engine

if TYPE_CHECKING:
    from tests.harness import Servetop


def test_every_engine_is_in_the_table_within_80_columns(servetop: Servetop) -> None:
    done = servetop("engines")  # no terminal: 80 columns
    lines = done.out.splitlines()
    assert all(any(line.startswith(name) for line in lines) for name in engine_names())
    assert max(map(len, lines)) <= 80
    assert done.code == 0


def test_as_json_they_are_what_the_adapters_say(servetop: Servetop) -> None:
    told = json.loads(servetop("engines", "--json").out)
    assert [each["name"] for each in told] == list(engine_names())
    sim = next(each for each in told if each["name"] == "sim")
    assert sim["changes_batch_size_live"]
    assert "max_num_seqs" in sim["exports"]


def test_one_engine_is_told_in_full(servetop: Servetop) -> None:
    told = servetop("engines", "vllm").out
    assert "--max-num-seqs" in told
    assert "preemptions_total" in told


def test_an_unknown_engine_is_one_line_and_exit_code_2(servetop: Servetop) -> None:
    done = servetop("engines", "orca")
    assert (done.code, done.out) == (2, "")
    assert "unknown engine 'orca'" in done.complaint


@pytest.mark.parametrize("name", engine_names())
def test_what_an_engine_exports_at_best_are_fields_of_a_sample(name: str) -> None:
    engine = load_engine(name)
    assert set(exported(engine)) <= set(GAUGES)
    assert bool(exported(engine)) == (engine.metrics() is not None)


def test_an_engine_says_how_to_get_it() -> None:
    assert all(each.install and each.batch_size for each in capabilities())
