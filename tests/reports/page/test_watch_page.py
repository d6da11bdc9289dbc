"""The page of a watch: verdict, servers, thresholds and charts of what was recorded, and nothing of a client."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import numpy as np
import pytest

from servetop.cli.main import main
from servetop.core.errors import ExitCode
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.page.watch_page import WatchPage, watch_html, watch_page
from servetop.reports.summary.watch_summary import watch_summary
from tests.analysis.test_watched_signals import ticks
from tests.recorded_watches import watch_of_one, watch_of_pages, watch_of_three
from tests.reports.page.test_page_html import data_of
from tests.watched_pages import TOKENS

OF_A_CLIENT = ("What if the limits", "goodput", "Trust", "in flight", "completed", "servetop rerun")


def page_of(path: Path) -> tuple[WatchPage, str]:
    with contextlib.closing(RecordingReader.open(path)) as reader:
        page = watch_page(reader, name=path.stem)
        assert page.summary == watch_summary(reader)
    return page, watch_html(page)


def body_of(text: str) -> str:
    return text.partition("<main>")[2].partition("</main>")[0]


def test_the_page_of_one_server_has_its_verdict_and_the_charts_that_have_values(tmp_path: Path) -> None:
    page, text = page_of(watch_of_one(tmp_path / "night.servetop", thresholds=("waiting<=10", "e2el_p90<1s")))
    assert re.findall("<h1>(.*?)</h1>", text) == [page.summary.headline]
    body, data = body_of(text), data_of(text)
    assert [each["name"] for each in data["charts"]] == ["tokens", "queue", "kv"]
    assert [line["label"] for line in data["charts"][1]["lines"]] == ["running", "waiting"]
    assert {each["kind"] for each in data["episodes"]} == {each.kind.value for each in page.record.episodes}
    assert "batch full" in body
    assert "was broken from 0:20 for 0:20" in body
    assert "e2el_p90 was not measured" in body
    assert not [each for each in OF_A_CLIENT if each in body]
    assert (data["runs"], data["distributions"], data["load"], data["heat"]) == ([], [], [], {})


def test_rates_are_those_that_the_engine_counted(tmp_path: Path) -> None:
    page, _ = page_of(watch_of_one(tmp_path / "night.servetop", ticks(waiting=0.0)))
    rates = page.time.columns["output_tokens"]
    assert rates[len(rates) // 2] == pytest.approx(200, rel=0.2)
    assert {"sent", "done", "in_flight", "in_flight_low", "target"}.isdisjoint(page.time.columns)


def test_a_source_that_is_rarely_scraped_has_its_rates_and_latencies_in_all_of_the_time_between(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = watch_of_pages(tmp_path / "prometheus.servetop", every=60.0, seconds=600.0)
    page, _ = page_of(path)
    at, columns = page.time.columns["at"], page.time.columns
    between = at < 541
    assert columns["output_tokens"][between].tolist() == pytest.approx([TOKENS] * int(between.sum()))
    assert np.isnan(columns["output_tokens"][~between]).all(), "after the last scrape"
    assert np.isfinite(columns["ttft_p90"][between]).all()
    assert main(["plot", str(path), "--metric", "tokens", "--width", "80"]) == ExitCode.OK
    text = capsys.readouterr().out
    assert not [line for line in text.splitlines() if re.match(r"\s*(1,?000|[2-9],?\d{3})", line)], "no spike"


def test_each_of_several_servers_has_a_row_a_line_and_its_episodes(tmp_path: Path) -> None:
    page, text = page_of(watch_of_three(tmp_path / "fleet.servetop", thresholds=("kv_usage<90%",)))
    body, data = body_of(text), data_of(text)
    assert [each["label"] for each in data["charts"][0]["lines"]] == ["gpu0", "gpu1", "gpu2"]
    names = [each["name"] for each in data["charts"]]
    assert names == ["tokens", "queue", "waiting", "kv", "preemptions", "ttft"], "ITL and E2EL are not exported"
    assert set(data["time"]["columns"]) >= {"at", "kv_usage_0", "ttft_p90_1"}
    assert page.thresholds == [
        ("kv_usage<90%", "gpu0", "was broken from 0:19 to the end"),
        ("kv_usage<90%", "gpu1", "kept"),
        ("kv_usage<90%", "gpu2", "kept"),
    ]
    for expected in ("gpu1: no response", "gpu2: 1 × restarted", "deploy of the router", "KV cache full"):
        assert expected in body
    assert not [each for each in OF_A_CLIENT if each in body]


def test_the_command_writes_the_page_and_markdown(tmp_path: Path) -> None:
    one, three = watch_of_one(tmp_path / "one.servetop"), watch_of_three(tmp_path / "three.servetop")
    page, markdown = tmp_path / "page.html", tmp_path / "page.md"
    assert main(["report", str(one), "-o", str(page)]) == ExitCode.OK
    assert "<h1>batch-bound for 0:20 of 1:00</h1>" in page.read_text()
    assert main(["report", str(three), "-o", str(markdown)]) == ExitCode.OK
    text = markdown.read_text()
    assert text.startswith("**gpu0: KV-bound for 0:")
    assert "| gpu0 | " in text
    assert "\n\n\n" not in text
    assert main(["report", str(one), str(three), "-o", str(markdown)]) == ExitCode.OK
    assert markdown.read_text().startswith("**The load was that of others")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("one.servetop", "--price", "2/h"), "--price: a watch has no requests of its own"),
        (("one.servetop", "three.servetop", "--format", "svg"), "a picture shows one recording: name one"),
        (("one.servetop", "three.servetop", "--format", "md", "--anyway"), "--anyway: watches are shown side by side"),
    ],
)
def test_what_a_page_cannot_show_is_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    watch_of_one(Path("one.servetop"))
    watch_of_three(Path("three.servetop"))
    assert main(["report", *words]) == ExitCode.USAGE
    assert message in capsys.readouterr().err


def test_the_plots_of_a_watch_have_no_chart_of_a_client(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = watch_of_one(tmp_path / "one.servetop")
    assert main(["plot", str(path)]) == ExitCode.OK
    text = capsys.readouterr().out
    assert "Throughput: tokens per second" in text
    assert "Requests running and waiting" in text
    assert "Load: requests per second" not in text
    assert main(["plot", str(path), "--metric", "load"]) == ExitCode.USAGE
