"""The page of watches side by side: the figures of the Markdown, the remark about the load, and both over time."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from servetop.analysis.comparison.watch_comparison import REMARK
from servetop.cli.main import main
from servetop.core.errors import ExitCode
from servetop.reports.comparison.compare_watches import compare_watches
from servetop.reports.comparison.watch_comparison_text import server_rows
from servetop.reports.page.watches_page import watches_html, watches_page
from tests.analysis.test_watched_signals import ticks
from tests.recorded_watches import watch_of_one, watch_of_three
from tests.reports.page.test_page_html import data_of
from tests.reports.page.test_watch_page import body_of


def cells(text: str, caption: str) -> list[list[str]]:
    """The rows of a table, without its head."""
    table = re.search(f"<caption>{caption}</caption>.*?<tbody>(.*?)</tbody>", text)
    assert table is not None, caption
    rows = re.findall("<tr>(.*?)</tr>", table[1])
    return [re.findall("<t[hd][^>]*>(.*?)</t[hd]>", row) for row in rows]


def test_tables_have_the_figures_of_the_comparison_and_the_page_says_that_the_load_differs(tmp_path: Path) -> None:
    paths = [watch_of_one(tmp_path / "last.servetop"), watch_of_one(tmp_path / "this.servetop", ticks(waiting=0.0))]
    page = watches_page(paths)
    assert page.comparison == compare_watches(paths)
    text = watches_html(page)
    (server,) = page.comparison.servers
    assert cells(text, "The server") == list(server_rows(server))
    assert ["peak waiting", "30", "0", "−100.0 %"] in cells(text, "The server")
    watches = {name: values for name, *values in cells(text, "The watches")}
    assert watches["recording"] == ["last", "this"]
    assert watches["verdict"] == [each.headline for each in page.comparison.watches]
    assert f"{REMARK[0].upper()}{REMARK[1:]}." in body_of(text)
    assert "Each server" not in text
    assert "servetop compare last this" in text


def test_charts_have_a_line_for_each_watch_from_its_beginning(tmp_path: Path) -> None:
    paths = [watch_of_one(tmp_path / "last.servetop"), watch_of_one(tmp_path / "this.servetop", ticks(waiting=0.0))]
    page = watches_page(paths)
    data = data_of(watches_html(page))
    waiting = next(each for each in data["charts"] if each["name"] == "waiting")
    assert [line["label"] for line in waiting["lines"]] == ["A", "B"]
    columns = page.time.columns
    middle = float(np.nanmean(columns["A_waiting"][25:35])), float(np.nanmean(columns["B_waiting"][25:35]))
    assert middle == (30.0, 0.0)
    assert not [each for each in data["charts"] if each["name"] == "ttft"], "not exported"


def test_servers_have_tables_by_their_names(tmp_path: Path) -> None:
    paths = [watch_of_one(tmp_path / "one.servetop"), watch_of_three(tmp_path / "three.servetop")]
    text = watches_html(watches_page(paths))
    (usage,) = [row for row in cells(text, "gpu0") if row[0] == "peak KV usage"]
    assert usage == ["peak KV usage", "–", "100.0 %", "–"]
    assert cells(text, "All servers")
    assert "sums have no latencies" in body_of(text)


def test_the_command_writes_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [watch_of_one(tmp_path / "one.servetop"), watch_of_three(tmp_path / "three.servetop")]
    page = tmp_path / "page.html"
    assert main(["report", *map(str, paths), "-o", str(page)]) == ExitCode.OK
    assert capsys.readouterr().out == f"{page}\n"
    assert "<title>one and three · servetop report</title>" in page.read_text(encoding="utf-8")
