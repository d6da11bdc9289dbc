"""`servetop engines` lists exactly what the adapters declare."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from servetop.cli.inspection.engines_table import COLUMNS, engines_table
from servetop.cli.tables import SanitizingConsole
from servetop.engines.capabilities import capabilities, exported
from servetop.engines.engine_registry import engine_names, load_engine
from servetop.engines.metrics.metrics_reader import GAUGES

if TYPE_CHECKING:
    from tests.harness import CommandInProcess


def test_every_engine_is_in_the_table_and_no_word_is_cut_in_a_pipe(command: CommandInProcess) -> None:
    done = command("engines")
    names = [line.split()[0] for line in done.out.splitlines() if line.strip()]
    assert set(engine_names()) <= set(names)
    assert f" {' '.join(COLUMNS)}\n" in done.out  # the simulator's metrics say all of them
    assert done.code == 0


def test_the_table_fits_into_80_columns_with_whole_words() -> None:
    console = SanitizingConsole(width=80)
    with console.capture() as captured:
        console.print(engines_table(capabilities()))
    text = captured.get()
    assert max(map(len, text.splitlines())) <= 80
    assert set(text.split()) >= {*COLUMNS, *engine_names()}


def test_as_json_they_are_what_the_adapters_say(command: CommandInProcess) -> None:
    reported = json.loads(command("engines", "--json").out)
    assert [each["name"] for each in reported] == list(engine_names())
    sim = next(each for each in reported if each["name"] == "sim")
    assert sim["changes_batch_size_live"]
    assert "max_num_seqs" in sim["exports"]


def test_one_engine_is_told_in_full(command: CommandInProcess) -> None:
    reported = command("engines", "vllm").out
    assert "--max-num-seqs" in reported
    assert "preemptions_total" in reported


def test_an_unknown_engine_is_one_line_and_exit_code_2(command: CommandInProcess) -> None:
    done = command("engines", "orca")
    assert (done.code, done.out) == (2, "")
    assert "unknown engine 'orca'" in done.complaint


@pytest.mark.parametrize("name", engine_names())
def test_what_an_engine_exports_at_best_are_fields_of_a_sample(name: str) -> None:
    engine = load_engine(name)
    assert set(exported(engine)) <= set(GAUGES)
    assert bool(exported(engine)) == (engine.metrics() is not None)


def test_an_engine_says_how_to_get_it() -> None:
    assert all(each.install and each.batch_size for each in capabilities())
