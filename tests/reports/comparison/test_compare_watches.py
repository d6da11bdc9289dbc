"""Watches side by side: the figures of each server by its name, and no interval."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from servetop.analysis.comparison.watch_comparison import REMARK
from servetop.cli.main import main
from servetop.core.errors import ExitCode, UsageError
from servetop.core.text import formats
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.comparison.compare_watches import FIGURES, compare_watches, watches_compared
from servetop.reports.comparison.watch_comparison_text import ROWS, server_rows
from servetop.reports.schema.watch_comparison_schema import watch_comparison_schema
from servetop.reports.summary.watch_summary import watch_summary
from tests.analysis.test_watched_signals import ticks
from tests.recorded_watches import failing_ticks, watch_of_one, watch_of_pages, watch_of_three
from tests.recordings.rows import change
from tests.reports.schema.test_summary_schema import ROOT, schema_errors
from tests.watched_pages import paged_ticks, serving

SCHEMA = json.loads((ROOT / "docs" / "schema" / "watch_comparison.json").read_text(encoding="utf-8"))


def test_figures_are_those_of_the_summaries(tmp_path: Path) -> None:
    paths = [watch_of_one(tmp_path / "a.servetop"), watch_of_one(tmp_path / "b.servetop", ticks(waiting=0.0))]
    found = compare_watches(paths)
    (server,) = found.servers
    summaries = []
    for path in paths:
        with contextlib.closing(RecordingReader.open(path)) as reader:
            summaries.append(watch_summary(reader))
    assert all(each.watched is not None for each in summaries)
    assert server.figures["max_waiting"] == (30.0, 0.0)
    assert server.figures["output_throughput"] == tuple(
        each.watched.output_throughput for each in summaries if each.watched
    )
    assert server.figures["batch_bound_share"] == pytest.approx((20 / 60, 0.0), abs=0.02)
    assert server.change("max_waiting") == -1.0
    assert server.figures["request_throughput"] == (None, None), "not exported, not 0"
    assert [each.headline for each in found.watches] == [each.headline for each in summaries]
    assert found.remark == REMARK


def test_servers_are_compared_by_name_and_one_that_only_one_watch_has_is_listed(tmp_path: Path) -> None:
    found = compare_watches([watch_of_one(tmp_path / "one.servetop"), watch_of_three(tmp_path / "three.servetop")])
    servers = {each.name: each.figures for each in found.servers}
    assert list(servers) == ["", "gpu0", "gpu1", "gpu2"]
    assert servers["gpu0"]["max_kv_usage"] == (None, 1.0)
    assert servers["gpu0"]["kv_bound_share"][1] == pytest.approx(40 / 60, abs=0.05)
    assert servers[""]["kv_bound_share"] == (0.0, None), "several servers together have no limit"
    assert servers["gpu1"]["p90_ttft_ms"] == (None, None), "only known to be at most the first bound"
    assert [each.servers for each in found.watches] == [1, 3]


def test_a_quantile_known_by_its_bucket_has_the_bounds_and_no_change(tmp_path: Path) -> None:
    slow = [watch_of_pages(tmp_path / f"{at}.servetop", every=1.0, seconds=60.0, slow_from=at) for at in (20.0, 40.0)]
    (server,) = compare_watches(slow).servers
    assert server.figures["p50_ttft_ms"] == (None, None)
    assert server.at_least["p50_ttft_ms"] == (500.0, 0.0)
    assert server.at_most["p50_ttft_ms"] == (1000.0, 100.0)
    known, interpolated = server.figures["p90_ttft_ms"]
    assert known is None
    assert interpolated == pytest.approx(850, abs=10)
    assert (server.at_least["p90_ttft_ms"], server.at_most["p90_ttft_ms"]) == ((500.0, None), (1000.0, None))
    rows = {name: values for name, *values in server_rows(server)}
    assert rows["TTFT p50, ms"] == ["500–1,000", "≤100", "–"]
    assert rows["TTFT p90, ms"] == ["500–1,000", formats.in_full(interpolated), "–"]


def test_means_are_those_of_the_sums_and_counts_of_the_server(tmp_path: Path) -> None:
    def served(mean: float) -> Callable[[float], dict[str, float]]:
        return lambda at: {**serving(at), "tpot_seconds_total": 3 * mean * at, "tpot_requests_total": 3 * at}

    paths = [
        watch_of_one(tmp_path / f"{mean}.servetop", paged_ticks(every=1.0, seconds=60.0, gauges=served(mean)))
        for mean in (0.0133, 0.0266)
    ]
    (server,) = compare_watches(paths).servers
    assert server.figures["mean_tpot_ms"] == pytest.approx((13.3, 26.6))
    rows = {name: values for name, *values in server_rows(server)}
    assert rows["TPOT mean, ms"] == ["13.3", "26.6", "+100.0 %"]
    assert "TTFT mean, ms" not in rows, "not exported"


def test_the_error_rate_is_that_of_the_counters_over_the_watch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [watch_of_one(tmp_path / f"{rate}.servetop", failing_ticks(rate)) for rate in (1.0, 2.0)]
    found = compare_watches(paths)
    (server,) = found.servers
    assert server.figures["error_rate"] == pytest.approx((20 / 236, 40 / 236))
    assert server.change("error_rate") == pytest.approx(1.0)
    assert server.figures["failing_share"] == pytest.approx((20 / 59, 20 / 59), abs=0.02)
    assert [each.error_rate_reason for each in found.watches] == [None, None]
    assert main(["compare", *map(str, paths)]) == ExitCode.OK
    text = capsys.readouterr().out
    (row,) = (line.split() for line in text.splitlines() if line.startswith("error rate"))
    assert " ".join(row) == "error rate 8.4 % 16.9 % +100.0 %"
    assert "not known" not in text
    for path, counts in zip(paths, ("8.4 % (20 of 236 requests)", "16.9 % (40 of 236 requests)"), strict=True):
        assert main(["summary", str(path)]) == main(["report", str(path), "--format", "md", "-o", "-"]) == ExitCode.OK
        assert capsys.readouterr().out.count(counts) == 2


@pytest.mark.parametrize("older", [False, True])
def test_an_error_rate_that_was_not_counted_is_said_not_to_be_known(
    older: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of an engine without such counters, or of a recording from before they were recorded."""
    counted = watch_of_one(tmp_path / "a.servetop", failing_ticks(2.0))
    without = watch_of_one(tmp_path / "b.servetop", failing_ticks(2.0) if older else None)
    if older:
        of_ticks = ("engine_requests_ended_total", "engine_requests_failed_total", "checksum")
        dropped = [f"ALTER TABLE tick DROP COLUMN {name}" for name in of_ticks]
        dropped += [f"ALTER TABLE engine_sample DROP COLUMN requests_{name}_total" for name in ("ended", "failed")]
        change(without, *dropped, "PRAGMA user_version = 1023")
    (server,) = compare_watches([counted, without]).servers
    known, unknown = server.figures["error_rate"]
    assert (known, unknown) == (40 / 236, None)
    assert server.figures["failing_share"][1] is None, "not 0"
    words = ["compare", str(counted), str(without)]
    assert main(words) == ExitCode.OK
    text = capsys.readouterr().out
    reason = "rror rate of B not known: not counted by the engine, or recorded before format 1.24"
    assert f"e{reason}\n{REMARK}\n" in text
    assert "error rate of A" not in text
    assert main([*words, "--markdown"]) == ExitCode.OK
    assert f"\n- E{reason}.\n" in capsys.readouterr().out
    assert main(["summary", str(without)]) == ExitCode.OK
    assert "not counted\n" in capsys.readouterr().out


def test_a_watch_without_a_request_has_no_error_rate(tmp_path: Path) -> None:
    silent = watch_of_one(tmp_path / "a.servetop", failing_ticks(0.0, ended=0.0))
    found = compare_watches([silent, watch_of_one(tmp_path / "b.servetop", failing_ticks(0.0))])
    assert found.servers[0].figures["error_rate"] == (None, 0.0)
    assert found.servers[0].figures["failing_share"] == (0.0, 0.0)
    assert found.watches[0].error_rate_reason == "no request ended"


def test_every_figure_has_a_row() -> None:
    assert list(ROWS) == list(FIGURES)


def test_the_command_prints_tables_markdown_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [str(watch_of_one(tmp_path / "a.servetop")), str(watch_of_three(tmp_path / "b.servetop"))]
    assert main(["compare", *paths]) == ExitCode.OK
    text = capsys.readouterr().out
    assert text.endswith(f"{REMARK}\n")
    assert "gpu2" in text
    assert main(["compare", *paths, "--markdown"]) == ExitCode.OK
    markdown = capsys.readouterr().out
    assert "| peak waiting | 30 | " in markdown
    assert main(["compare", *paths, "--json"]) == ExitCode.OK
    data = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in data["servers"]] == ["", "gpu0", "gpu1", "gpu2"]
    assert data["servers"][0]["figures"].keys() == FIGURES.keys()
    assert watch_comparison_schema() == SCHEMA, "run: make schema"
    assert schema_errors(data, SCHEMA, SCHEMA["$defs"]) == []
    del data["watches"][0]["date"]
    assert schema_errors(data, SCHEMA, SCHEMA["$defs"]) != []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("a.servetop",), "a comparison needs two watches: name another one"),
        (("a.servetop", "sample"), "is a run: their figures cannot be compared"),
        (("a.servetop,b.servetop", "c.servetop"), "watches are not repeats of one load"),
        (("a.servetop", "b.servetop", "--anyway"), "--anyway: watches are shown side by side"),
        (("a.servetop", "b.servetop", "--metric", "p99_ttft_ms"), "--metric: watches are shown side by side"),
    ],
)
def test_what_cannot_be_compared_is_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b", "c"):
        watch_of_one(Path(f"{name}.servetop"))
    assert main(["compare", *words]) == ExitCode.USAGE
    assert message in capsys.readouterr().err


def test_runs_are_left_to_the_comparison_of_runs() -> None:
    assert watches_compared(["sample", "sample:h200"]) == []
    with pytest.raises(UsageError, match="is given twice"):
        watches_compared(["sample", "sample"])
