"""Which rows of a metrics page count: those of the model under load, once per group of ranks."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence

import pytest

from servetop.engines.control.control_client import HttpResult, HttpResults
from servetop.engines.metrics.metrics_reader import MetricMap, gauge
from servetop.engines.metrics.metrics_source import MetricsScraper
from servetop.engines.metrics.model_rows import other_models, own_rows, related_models
from servetop.engines.metrics.prometheus_text import scan

RUNNING = "vllm:num_requests_running"
MAP = MetricMap(fields={"running": gauge(RUNNING)})


def page(*rows: tuple[str, float]) -> bytes:
    return "".join(f"{RUNNING}{{{labels}}} {value}\n" for labels, value in rows).encode()


def total(body: bytes, models: Sequence[str] = ("m",)) -> float:
    kept = own_rows(body, models).decode()
    return sum(row.value for row in scan(kept, (RUNNING,)).get(RUNNING, []))


def ranks(kind: str, count: int) -> bytes:
    return page(*((f'model_name="m",{kind}="{rank}"', 20.0) for rank in range(count)))


@pytest.mark.parametrize("kind", ["tp_rank", "pp_rank", "moe_ep_rank", "attn_cp_rank"])
def test_ranks_that_process_the_same_requests_count_once(kind: str) -> None:
    assert total(ranks(kind, 8)) == 20


@pytest.mark.parametrize("kind", ["dp_rank", "engine", "attn_dp_rank", "data_parallel_rank"])
def test_data_parallel_ranks_have_requests_of_their_own(kind: str) -> None:
    assert total(ranks(kind, 4)) == 80


def test_ranks_of_both_kinds_are_folded_within_each_data_parallel_rank() -> None:
    labels = [(dp, f'dp_rank="{dp}",tp_rank="{tp}",pp_rank="{pp}"') for dp in (0, 1) for tp in (0, 1) for pp in (0, 1)]
    assert total(page(*((text, 10.0 + dp) for dp, text in labels)), models=()) == 21


def test_a_rank_that_is_a_step_behind_does_not_hide_the_newest_value() -> None:
    assert total(page(('tp_rank="0"', 3.0), ('tp_rank="1"', 4.0))) == 4


def test_a_rank_without_a_number_does_not_hide_the_others() -> None:
    assert total(page(('tp_rank="0"', 3.0), ('tp_rank="1"', math.nan))) == 3
    assert total(page(('tp_rank="0"', math.nan), ('tp_rank="1"', 3.0))) == 3


def test_rows_of_another_model_do_not_count() -> None:
    assert total(page(('model_name="m"', 3.0), ('model_name="other"', 50.0))) == 3


def test_two_servers_with_the_model_are_summed() -> None:
    rows = [(f'instance="{host}",model_name="{model}"', 5.0) for host in "ab" for model in ("m", "other")]
    assert total(page(*rows)) == 10


def test_a_row_without_a_model_counts_only_for_the_servers_of_the_model() -> None:
    rows = [('instance="a",model_name="m"', 3.0), ('instance="b",model_name="other"', 50.0)]
    assert total(page(*rows, ('instance="a"', 1.0), ('instance="b"', 7.0))) == 4


def test_the_only_model_of_a_page_counts_whatever_its_name() -> None:
    """A gateway may rename the model."""
    assert total(page(('model_name="meta/llama"', 3.0)), models=["alias"]) == 3


def test_without_a_model_all_rows_count() -> None:
    assert total(page(('model_name="m"', 3.0), ('model_name="other"', 50.0)), models=()) == 53


def test_a_page_without_such_labels_is_returned_as_it_is() -> None:
    body = b"# HELP x y\nvllm:num_requests_running 4\n"
    assert own_rows(body, ["m"]) is body


def test_json_is_returned_as_it_is_whatever_a_prompt_in_it_names() -> None:
    """llama.cpp's /slots has the prompts."""
    body = b'[{"id": 0, "prompt": "tp_rank and model_name=\\"x\\" model_name=\\"y\\""}]'
    assert own_rows(body, ["m"]) is body
    assert other_models(body, ["m"]) == []


@pytest.mark.parametrize("body", [b"<html>sign in</html>", b'{"detail": "x"}', b" [1]"])
def test_html_and_json_are_no_page_of_an_idle_engine(body: bytes) -> None:
    idle = MetricMap(fields={"running": gauge(RUNNING, absent=0.0)}, lazy=True)
    assert idle.sample({"/metrics": body}, start=0.0, end=0.0) is None
    assert idle.sample({"/metrics": b"# HELP x y\n"}, start=0.0, end=0.0) is not None


@pytest.mark.parametrize(
    ("model", "cards", "names"),
    [
        ("m", None, {"m"}),
        ("lora", [{"id": "base", "root": "/w"}, {"id": "lora", "parent": "base", "root": "/l"}], {"lora", "base"}),
        ("base:lora", [{"id": "base"}], {"base:lora", "base"}),
        ("b", [{"id": "a", "root": "/w"}, {"id": "b", "root": "/w"}, {"id": "c", "root": "/x"}], {"a", "b"}),
        ("m", [1, "m", {"id": None}, {"root": ["x"]}], {"m"}),
    ],
)
def test_the_names_of_a_model_in_metrics(model: str, cards: object, names: set[str]) -> None:
    assert related_models(model, None if cards is None else {"data": cards}) == names
    assert related_models(model, cards) == names


def test_several_models_of_which_none_is_under_load_are_named() -> None:
    body = page(('model_name="a"', 3.0), ('model_name="b"', 50.0))
    assert other_models(body, ["m"]) == ["a", "b"]
    assert other_models(body, ["a"]) == []
    assert other_models(page(('model_name="a"', 3.0)), ["m"]) == []


class _Page:
    """A source of one page."""

    url = "http://server"

    def __init__(self, body: bytes) -> None:
        self._body = body

    def where(self, path: str) -> str:
        return self.url + path

    async def fetch(self, paths: Sequence[str]) -> HttpResults:
        return dict.fromkeys(paths, HttpResult(200, self._body, age=2.0))

    async def close(self) -> None: ...


def fetched(body: bytes, *models: str) -> HttpResult:
    scraper = MetricsScraper(MAP, _Page(body), frozenset(models))
    return asyncio.run(scraper.fetch())["/metrics"]


def test_a_scrape_has_the_rows_that_count_and_keeps_its_age() -> None:
    result = fetched(page(('model_name="m"', 3.0), ('model_name="other"', 50.0)), "m")
    sample = MAP.sample({"/metrics": result.body}, start=0.0, end=0.0)
    assert (sample and sample.running, result.age) == (3.0, 2.0)


def test_a_scrape_of_other_models_only_is_an_error_that_names_them() -> None:
    result = fetched(page(*((f'model_name="{name}"', 1.0) for name in "abcdef")), "m")
    assert not result.ok
    assert result.error == "its rows are those of the models a, b, c, d, …: give --model as the engine names it"


def test_a_line_end_in_a_models_name_starts_no_line_of_the_error() -> None:
    result = fetched(page(('model_name="a\\nb"', 1.0), ('model_name="c"', 1.0)), "m")
    assert result.error == "its rows are those of the models a b, c: give --model as the engine names it"
