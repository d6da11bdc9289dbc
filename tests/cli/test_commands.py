"""The commands run, ls, summary and serve print the same numbers."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from servetop.analysis.live_stats import LiveStats, live_stats
from servetop.analysis.series.tick_history import TickHistory
from servetop.cli.report.report import print_recording
from servetop.recordings.read.reader import RecordingReader
from tests.harness import RAN, Finished, Servetop, answers, opened, printed_url, wait_for

pytestmark = pytest.mark.integration

VLLM_BENCH_KEYS = {
    "date", "backend", "label", "model_id", "tokenizer_id", "num_prompts", "request_rate", "burstiness",
    "max_concurrency", "duration", "completed", "failed", "total_input_tokens", "total_output_tokens",
    "request_throughput", "request_goodput", "output_throughput", "total_token_throughput",
    *(f"{each}_{metric}_ms" for metric in ("ttft", "tpot", "itl", "e2el") for each in ("mean", "median", "std", "p99")),
}  # fmt: skip
OWN_KEYS = {
    "recording": None,
    "engine": {"name", "version", "kv_blocks_total", "max_num_seqs"},
    "server": {"max_kv_usage", "preemptions", "max_running", "max_waiting"},
    "trust": {"slip_p99_ms", "loop_lag_p99_ms", "offered_rate", "sent_rate", "littles_law_error", "verdict"},
    "stages": None,
}
BRIEF = ("--request-rate", "20", "--num-prompts", "20", "--input-len", "16", "--output-len", "8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("recordings")


@pytest.fixture(scope="module")
def brief_run(folder: Path) -> Finished:
    servetop = Servetop(folder)
    return servetop(
        "--json", *BRIEF, "--label", "brief", "--metadata", "gpu=none", "--goodput", "ttft:5000", "e2el:9000"
    )


def test_the_summary_has_the_keys_of_vllms_benchmark_and_our_own(brief_run: Finished) -> None:
    summary = brief_run.summary
    assert set(summary) >= VLLM_BENCH_KEYS | set(OWN_KEYS)
    for part, keys in OWN_KEYS.items():
        assert keys is None or set(summary[part]) >= keys


def test_the_summary_counts_the_requested_load(brief_run: Finished) -> None:
    summary = brief_run.summary
    assert brief_run.code in RAN, brief_run.err
    assert (summary["completed"], summary["failed"]) == (20, 0)
    assert summary["total_input_tokens"] == 20 * 16
    assert summary["total_output_tokens"] == 20 * 8 == summary["server"]["generation_tokens"]
    assert summary["gpu"] == "none"
    assert summary["request_goodput"] == pytest.approx(summary["request_throughput"])


def test_with_json_stdout_holds_only_json(brief_run: Finished) -> None:
    assert len(brief_run.out.splitlines()) == 1


def test_the_summary_command_prints_the_summary_of_the_run(brief_run: Finished, folder: Path) -> None:
    again = Servetop(folder)("summary", "latest", "--json").summary
    assert again == brief_run.summary | {"recording_state": "finished"}


def test_ls_lists_the_recording_with_its_figures(brief_run: Finished, folder: Path) -> None:
    (info,) = json.loads(Servetop(folder)("ls", "--json").out)
    assert Path(info["path"]).name == Path(brief_run.summary["recording"]).name
    assert (info["engine"], info["model"], info["label"]) == ("sim", "llama-2-7b", "brief")
    assert info["requests"] == 20
    assert info["peak_output_tokens_per_s"] > 0


def figures(stats: LiveStats) -> object:
    return (stats.rates, stats.totals, stats.latencies, stats.load, stats.engine, stats.trust)


def test_a_replay_shows_the_same_numbers_as_the_live_dashboard(servetop: Servetop, tmp_path: Path) -> None:
    """A viewer that follows the growing file, tick by tick, against one that opens the finished file."""
    recording = tmp_path / "run.servetop"
    live: dict[float, LiveStats] = {}
    history = TickHistory()
    with servetop.started("--headless", *BRIEF, "--record", str(recording)) as process:
        reader = wait_for(lambda: opened(recording), seconds=10, what="the recording")

        def follow() -> bool:
            for tick in reader.poll().ticks:
                history.append(tick)
                live[tick.end] = live_stats(history, tick.end)
            return process.poll() is not None

        wait_for(follow, seconds=30, what="the end of the run")
    replayed = TickHistory(RecordingReader.open(recording).poll().ticks)
    assert live
    for at, shown in live.items():
        again = live_stats(replayed, at)
        assert repr(figures(again)) == repr(figures(shown))
        for name in ("offered", "output_tokens", "kv_usage", "preemptions"):
            assert np.array_equal(getattr(again.series, name), getattr(shown.series, name), equal_nan=True)


def test_an_unmet_threshold_is_reported_and_exits_with_99(servetop: Servetop) -> None:
    done = servetop("--json", *BRIEF, "--threshold", "completed>=20", "--threshold", "p99_ttft_ms<=0.001")
    assert done.code == 99
    assert "p99_ttft_ms<=0.001" in done.complaint
    assert "completed" not in done.complaint


def test_a_run_without_a_recording_leaves_none(servetop: Servetop) -> None:
    done = servetop("--json", "--no-record", *BRIEF)
    assert done.summary["recording"] is None
    assert done.summary["completed"] == 20
    assert not list(servetop.folder.glob("**/*"))


def test_serve_is_a_standalone_server_that_servetop_can_attach_to(servetop: Servetop) -> None:
    with servetop.started("serve", "--port", "0", "--model", "opt-125m") as server:
        url = printed_url(server)
        wait_for(lambda: answers(f"{url}/health"), seconds=10, what="the server's start")
        done = servetop("--url", url.removeprefix("http://"), "--json", *BRIEF)
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0
    assert done.summary["completed"] == 20
    assert done.summary["engine"]["name"] == "sim"
    assert done.summary["server"]["generation_tokens"] == 160


@pytest.mark.parametrize(
    ("package", "forbidden"),
    [
        ("servetop.analysis.live_stats", {"textual", "rich", "httpx", "sqlite3"}),
        ("servetop.loadgen.worker.sender_handle", {"textual", "rich", "sqlite3", "servetop.engines"}),
        ("servetop.reports.summary.summary", {"textual", "rich", "httpx", "servetop.loadgen"}),
        ("servetop.engines.start", {"textual", "plotext", "sqlite3", "servetop.loadgen"}),
        ("servetop.tui.app", {"httpx", "uvloop", "sqlite3", "servetop.recordings", "servetop.cli"}),
    ],
)
def test_a_package_imports_only_what_its_layer_allows(package: str, forbidden: set[str]) -> None:
    script = f"import sys, {package}; print(*sorted({forbidden!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_verify_distinguishes_sound_damaged_and_foreign_files(servetop: Servetop, tmp_path: Path) -> None:
    golden = Path(__file__).parents[1] / "golden" / "vllm.servetop"
    torn = tmp_path / "torn.servetop"
    torn.write_bytes(golden.read_bytes()[:60_000])
    sound = servetop("verify", str(golden))
    assert (sound.code, sound.out.splitlines()[0]) == (0, f"{golden}: sound")
    both = servetop("verify", "--json", str(golden), str(torn))
    assert both.code == 1
    assert [each["sound"] for each in json.loads(both.out)] == [True, False]
    other = tmp_path / "notes.txt"
    other.write_text("not one")
    all_three = servetop("verify", "--json", str(golden), str(torn), str(other))
    assert all_three.code == 2
    assert [each["verdict"] for each in json.loads(all_three.out)] == ["sound", "not sound", "not a recording"]
    assert servetop("verify", str(tmp_path / "gone")).code == 2


def test_the_summary_after_a_dashboard_names_no_recording_that_is_thrown_away(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_recording("sample", as_json=False, kept=False)
    assert "recording  none kept (--no-record)" in capsys.readouterr().out
