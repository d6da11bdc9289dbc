"""Charts as text: the figures of the page, marks of stages and episodes, and a curve for each row of a sweep."""

from __future__ import annotations

import contextlib
import lzma
from pathlib import Path

from servetop.core.text import formats
from servetop.recordings.library.catalog import resolve
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.page.chart_specs import CHARTS
from servetop.reports.page.terminal_charts import DEFAULT_CHARTS, TextChart, terminal_charts
from servetop.reports.summary.recorded_run import recorded_run
from tests.hostile_recording import write_hostile_recording

GOLDEN = Path(__file__).parents[2] / "golden" / "h200_sweep.servetop.xz"
EVERY = (*(each.name for each in CHARTS), "latency")


def charts_of(path: Path, *names: str, width: int = 80) -> list[TextChart]:
    with contextlib.closing(RecordingReader.open(path)) as reader:
        return terminal_charts(reader, names=names, width=width)


def column_of(line: str, character: str) -> int:
    assert character in line
    return line.index(character)


def test_the_main_charts_of_a_run_are_in_the_order_of_the_page() -> None:
    titles = [each.title for each in charts_of(resolve("sample"), *DEFAULT_CHARTS)]
    assert titles == [
        "Stages (┊) and episodes (━)",
        "Load: requests per second",
        "Throughput: output tokens per second",
        "TTFT: time to first token",
        "Requests running, waiting, in flight",
        "KV cache used",
        "Preemptions per second",
        "ITL: inter-token latency",
        "Latency of each stage against its throughput, req/s",
    ]


def test_every_chart_has_the_width_that_is_asked_for() -> None:
    for width in (40, 80, 173):
        for chart in charts_of(resolve("sample"), *EVERY, width=width):
            lines = [line for line in chart.text.split("\n") if line.strip().startswith(("┌", "└"))]
            assert [len(line) for line in lines] == ([width] * 2 if lines else [])
            assert max(map(len, chart.text.split("\n"))) <= width


def test_all_charts_over_time_share_one_time_axis_with_the_marks() -> None:
    marks, *charts = charts_of(resolve("sample"), "load", "ttft", "queue")
    stages, episodes = marks.text.split("\n")[:2]
    for chart in charts:
        lines = chart.text.split("\n")
        (axis,) = [line for line in lines if line.strip().startswith("└")]
        assert column_of(axis, "━") in range(column_of(episodes, "━"), column_of(episodes, "━") + 2)
        second = stages.index("┊", stages.index("┊") + 1)
        assert lines[1][second] == "┊"


def test_the_episode_that_limited_the_run_is_where_the_story_has_it() -> None:
    marks = charts_of(resolve("sample"), "queue")[0]
    with contextlib.closing(RecordingReader.open(resolve("sample"))) as reader:
        record = recorded_run(reader)
    kinds = {each.kind.value for each in record.episodes}
    assert {line.split("━")[-1].strip() for line in marks.text.split("\n")[1:]} == kinds


def test_a_sweep_has_a_curve_for_each_row_of_its_matrix(tmp_path: Path) -> None:
    path = tmp_path / "h200_sweep.servetop"
    path.write_bytes(lzma.decompress(GOLDEN.read_bytes()))
    ttft, tpot = charts_of(path, "latency")
    assert (ttft.title, tpot.title) == ("TTFT p99 against load", "TPOT p99 against load")
    for chart in (ttft, tpot):
        *_, loads, across, legend = chart.text.split("\n")
        assert loads.split() == ["16", "32", "64"]
        assert across.strip() == "requests/s"
        assert legend == "● batch 64   ▲ batch 128   ■ batch 256"


def test_a_chart_that_the_recording_has_no_values_of_is_left_out() -> None:
    assert charts_of(resolve("sample"), "gpu") == []
    assert [each.name for each in charts_of(resolve("sample"), "gpu", "tpot")] == ["marks", "tpot"]


def test_latencies_are_on_the_axis_in_their_own_unit() -> None:
    (_, chart) = charts_of(resolve("sample"), "ttft")
    labels = [line.split("┤")[0].strip() for line in chart.text.split("\n") if "┤" in line]
    assert labels == [formats.axis_seconds(each) for each in (10.0, 1.0, 0.1, 0.01)]


def test_names_from_strangers_stay_in_their_line(tmp_path: Path) -> None:
    write_hostile_recording(tmp_path / "hostile.servetop", "a\nb\x1b[2J\u202e")
    for chart in charts_of(tmp_path / "hostile.servetop", *EVERY):
        assert {"\x1b", "\u202e"} & set(chart.text) == set()
        assert not any(line.startswith("b") for line in chart.text.split("\n"))
