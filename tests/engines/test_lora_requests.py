"""The LoRA adapters that vLLM names in the labels of one series: those of the newest row."""

from __future__ import annotations

from servetop.engines.metrics.lora_requests import MOST, RUNNING, WAITING
from servetop.engines.metrics.series_collector import SeriesCollector
from servetop.engines.metrics.vllm_exported import VLLM_EXPORTED

ROW = 'vllm:lora_requests_info{{max_lora="4",running_lora_adapters="{runs}",waiting_lora_adapters="{waits}"}} {at}\n'


def collected(*pages: str) -> dict[str, float]:
    collector = SeriesCollector(VLLM_EXPORTED)
    for at, page in enumerate(pages):
        collector.collect({"/metrics": page.encode()}, at=10.0 * at)
    reading = collector.take()
    return {} if reading is None else dict(reading.values)


def test_the_adapters_of_the_newest_row_run_and_wait() -> None:
    old, new = ROW.format(runs="law", waits="", at=1.7e9), ROW.format(runs="sql,chat", waits="law", at=1.7e9 + 5)
    expected = {
        f"{RUNNING}{{adapter=sql}}": 1.0,
        f"{RUNNING}{{adapter=chat}}": 1.0,
        f"{WAITING}{{adapter=law}}": 1.0,
        MOST: 4.0,
    }
    assert collected(old + new) == collected(new + old) == expected


def test_an_adapter_that_runs_no_more_is_gone_with_the_next_reading() -> None:
    busy, idle = ROW.format(runs="law", waits="", at=1.7e9), ROW.format(runs="", waits="", at=1.7e9 + 5)
    assert collected(busy, busy + idle) == {MOST: 4.0}


def test_a_name_with_blanks_or_without_a_limit_is_read_as_it_is() -> None:
    page = 'vllm:lora_requests_info{running_lora_adapters="a b, {c}",max_lora="many"} 1\n'
    assert collected(page) == {f"{RUNNING}{{adapter=a b}}": 1.0, f"{RUNNING}{{adapter=_c_}}": 1.0}
