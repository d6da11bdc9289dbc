"""servetop against a real vLLM: what it records is what vLLM itself counted, and nothing is left behind."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import numpy as np
import psutil
import pytest

from servetop.analysis.diagnosis.diagnosis import Bottleneck
from servetop.analysis.diagnosis.episode import EpisodeKind
from servetop.analysis.diagnosis.run_record import RESTARTING
from servetop.core.events import Action
from servetop.recordings.read.reader import RecordingReader
from tests.harness import Servetop, wait_for
from tests.integration.harness import (
    SCARCE_BLOCKS,
    Vllm,
    counters,
    folded,
    frames,
    kill_engine,
    loaded,
    noticed_in_time,
    peak_is_possible,
)

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

LOAD = ("--max-concurrency", "24", "--num-prompts", "96", "--input-len", "12", "--output-len", "300")

WELL = (0, 99)
"""99 too: vLLM and its client share two processors here, and the trust meter may rightly say that the client lagged."""


def managed(vllm: Vllm, command: str) -> list[str]:
    return ["--engine", "vllm", "--engine-command", command, "--model", vllm.model, "--max-num-seqs", "32"]


def engine_processes() -> list[str]:
    """The processes of vLLM that were started in this folder: not those of another clone that is tested beside it."""
    found, folder = [], str(Path.cwd())
    for process in psutil.process_iter(["cmdline", "cwd"]):
        words = " ".join(process.info["cmdline"] or [])
        if process.info["cwd"] != folder:
            continue
        if "vllm.entrypoints" in words or "vllm serve" in words or "VLLM::" in words:
            found.append(f"{process.pid} {words[:120]}")
    return found


def test_an_attached_runs_numbers_agree_with_vllms_own_metrics(
    scarce_vllm: str, servetop: Servetop, tmp_path: Path
) -> None:
    before = counters(scarce_vllm)
    done = servetop("--url", scarce_vllm, *LOAD, "--json", "--record", str(tmp_path / "run.servetop"))
    after = counters(scarce_vllm)
    assert done.code in WELL, done.err
    summary = done.summary
    counted = {name: after[name] - before.get(name, 0.0) for name in after}

    assert summary["engine"]["name"] == "vllm"
    assert summary["engine"]["version"].startswith("0.32")
    assert summary["engine"]["kv_blocks_total"] == 63  # 64, one of them reserved
    assert summary["completed"] == 96
    assert summary["failed"] == 0
    assert summary["total_output_tokens"] == 96 * 300 == counted["vllm:generation_tokens_total"]
    assert summary["total_input_tokens"] == counted["vllm:prompt_tokens_total"]
    assert summary["server"]["preemptions"] == counted["vllm:num_preemptions_total"] > 0
    assert summary["server"]["generation_tokens"] == counted["vllm:generation_tokens_total"]
    assert peak_is_possible(summary["server"], "max_kv_usage", most=1.0)
    exported = {(each["name"], each["label"]): each["value"] for each in summary["engine_metrics"]}
    assert exported["preemptions per request", None] > 0
    assert exported["prompt", None] <= exported["output limit", None]
    finished = [value for (name, _), value in exported.items() if name == "finished"]
    assert len(finished) >= 4
    assert sum(finished) == exported["finished", "length"] > 0
    held = summary["trust"]["littles_law_error"]  # None: no page came within a second
    assert held is None or -1.0 <= held <= 0.15  # it is measured with samples: a busy machine misses the most loaded


def test_the_recorded_gauges_are_those_that_vllm_exports(scarce_vllm: str, servetop: Servetop, tmp_path: Path) -> None:
    recording = tmp_path / "run.servetop"
    assert servetop("--url", scarce_vllm, *LOAD, "--headless", "--record", str(recording)).code in WELL
    rows = sqlite3.connect(recording).execute(
        "SELECT kv_usage, kv_blocks_used, kv_blocks_total, running, waiting FROM engine_sample"
    )
    samples = rows.fetchall()
    assert samples
    for usage, used, total, running, waiting in samples:
        assert used == pytest.approx(usage * total, abs=0.6)
        assert running + waiting <= 24


@pytest.mark.parametrize("endpoint", ["completions", "chat"])
def test_the_times_that_vllm_tells_with_each_answer_are_those_of_its_histograms(
    scarce_vllm: str, servetop: Servetop, tmp_path: Path, endpoint: str
) -> None:
    recording = tmp_path / "run.servetop"
    before = counters(scarce_vllm)
    load = ("--max-concurrency", "48", "--num-prompts", "96", "--input-len", "12", "--output-len", "60")
    words = ("--url", scarce_vllm, "--endpoint", endpoint, *load, "--headless", "--record", str(recording))
    assert servetop(*words).code in WELL
    after = counters(scarce_vllm)
    phases = ("queue", "prefill", "decode")
    columns = [*(f"server_{phase}" for phase in phases), "sent", "first_token_at"]
    rows = np.array(list(RecordingReader.open(recording).request_rows(columns)), dtype=float)
    assert rows.shape == (96, 5)
    for reported, phase in zip(rows.T, phases, strict=False):
        name = f"vllm:request_{phase}_time_seconds_sum"
        assert (reported >= 0).all()
        assert reported.sum() == pytest.approx(after[name] - before[name], rel=1e-3)
    queue, prefill, _, sent, first_token_at = rows.T
    assert (queue + prefill <= first_token_at - sent).all()
    assert queue.max() > 0.01  # 48 at once, 32 of them batched


def test_servetop_starts_vllm_by_vllm_serve_and_leaves_nothing_behind(
    vllm: Vllm, servetop: Servetop, tmp_path: Path
) -> None:
    before = engine_processes()
    recording = tmp_path / "managed.servetop"
    words = [*managed(vllm, vllm.serve), *LOAD, "--json", "--record", str(recording), "--", *SCARCE_BLOCKS]
    done = servetop(*words)
    assert done.code in WELL, done.err
    assert done.summary["completed"] == 96
    assert done.summary["server"]["preemptions"] > 0
    assert done.summary["engine"]["max_num_seqs"] == 32
    assert engine_processes() == before
    log = [line.text for line in RecordingReader.open(recording).poll().log_lines]
    assert any("KV cache" in line for line in log)


def test_a_killed_vllm_is_noticed_within_two_seconds_and_the_recording_is_whole(
    vllm: Vllm, servetop: Servetop, tmp_path: Path
) -> None:
    before = engine_processes()
    recording = tmp_path / "killed.servetop"
    load = ("--max-concurrency", "8", "--duration", "120", "--input-len", "12", "--output-len", "300")
    words = [*managed(vllm, vllm.api_server), *load, "--headless", "--record", str(recording), "--", *SCARCE_BLOCKS]
    with loaded(servetop, words, recording, seconds=180) as (process, reader):
        killed_at = kill_engine(reader)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 3
    assert "│" in err  # the engine's last log lines
    update = RecordingReader.open(recording).poll()
    assert update.end is not None
    assert update.end.exit_code == 3
    assert any("vLLM" in note.text for note in update.notes if note.severity == "error")
    assert noticed_in_time(recording, killed_at)
    state = folded(recording)
    (last,) = frames(state, state.edge, state.edge + 0.4)
    assert last.verdict.line.startswith("run failed: vLLM was killed by SIGKILL")
    assert last.story is not None
    assert "vLLM was killed by SIGKILL" in last.story.headline
    wait_for(lambda: engine_processes() == before, seconds=10, what="the end of vLLM's processes")


def test_a_sweep_restarts_the_engine_between_batch_sizes(vllm: Vllm, servetop: Servetop, tmp_path: Path) -> None:
    grid = tmp_path / "grid.toml"
    grid.write_text(
        "max_num_seqs = [2, 8]\nrequest_rate = ['inf']\nmax_concurrency = [12]\nnum_prompts = 48\n"
        "[workload]\ninput_len = 12\noutput_len = 150\n"
    )
    before = engine_processes()
    engine = ("--engine", "vllm", "--engine-command", vllm.api_server, "--model", vllm.model)
    done = servetop("sweep", str(grid), *engine, "--json", "--", *SCARCE_BLOCKS)
    assert done.code in WELL, done.err
    cells = {stage["max_num_seqs"]: stage for stage in done.summary["stages"]}
    assert set(cells) == {2, 8}
    for batch, cell in cells.items():
        assert peak_is_possible(cell["server"], "max_running", most=batch), cell["server"]
    assert all(cell["completed"] == 48 and cell["finished"] for cell in cells.values())
    assert done.summary["server"]["generation_tokens"] == 2 * 48 * 150
    assert engine_processes() == before


def test_a_key_that_changes_the_batch_size_restarts_a_managed_engine_and_begins_a_new_stage(
    vllm: Vllm, servetop: Servetop, tmp_path: Path
) -> None:
    recording = tmp_path / "steered.servetop"
    load = ("--max-concurrency", "6", "--duration", "12", "--input-len", "12", "--output-len", "40")
    output = ("--headless", "--json", "--record", str(recording))
    words = [*managed(vllm, vllm.api_server), *load, *output, "--", *SCARCE_BLOCKS]
    with loaded(servetop, words, recording, seconds=180) as (process, reader):
        reader.send(Action.SET_MAX_NUM_SEQS, value=3)
        out, err = process.communicate(timeout=240)
    assert process.returncode in WELL, err
    after = RecordingReader.open(recording)
    (command,) = after.poll().commands
    assert command.reply == "batch size 3"
    _, restarted = json.loads(out)["stages"]
    assert restarted["max_num_seqs"] == 3
    assert peak_is_possible(restarted["server"], "max_running", most=3), restarted["server"]
    shows_the_restart(recording)
    shows_vllms_own_series(recording)


def shows_the_restart(recording: Path) -> None:
    """The verdict, the batch size and the episodes of a replay are those of each time, before and after a restart."""
    state = folded(recording)
    first, second = state.stages
    (restart,) = [note.at for note in state.notes if note.text.endswith(RESTARTING)]
    assert {frame.verdict.bottleneck for frame in frames(state, 0.5, first.at)} == {Bottleneck.STARTING}
    assert {frame.verdict.bottleneck for frame in frames(state, restart, second.at)} == {Bottleneck.RESTARTING}
    for frame in frames(state, first.at, state.edge):
        assert frame.stats.load.request_rate is not None or frame.verdict.bottleneck is not Bottleneck.HEADROOM
    after = {frame.verdict.bottleneck for frame in frames(state, second.at + 0.5, second.at + 3)}
    assert not after & {Bottleneck.STARTING, Bottleneck.RESTARTING}
    sizes = {(each.detected_at < second.at, each.batch) for each in state.judged.episodes}
    assert sizes <= {(True, 32.0), (False, 3.0)}
    assert not [each.text for each in state.judged.episodes if each.kind is EpisodeKind.ENGINE_ERROR]


def shows_vllms_own_series(recording: Path) -> None:
    """The engine page has vLLM's series, by the names of its metrics page, once a page came that counts requests."""
    state = folded(recording)
    pages = [frame.engine_page(20) for frame in frames(state, state.stages[-1].at, state.edge + 0.5)]
    lines = [line for page in pages for group in page.groups for line in group.lines if line.label in ("", "length")]
    values: dict[str, list[float]] = {}
    for line in lines:
        values.setdefault(line.source, []).append(line.value)
    assert pages[-1].reason == ""
    assert {"vllm:request_queue_time_seconds", "vllm:request_num_preemptions"} <= values.keys()
    if np.nanmax(values["vllm:request_success_total"]) > 0:  # a server that is too busy sends no page in the load
        assert np.nanmax(values["vllm:time_to_first_token_seconds"]) > 0
        assert np.nanmax(values["vllm:iteration_tokens_total"]) > 0
        assert np.nanmax(values["vllm:request_prompt_tokens"]) == pytest.approx(12, rel=0.5)


def test_a_vllm_that_cannot_start_says_why_in_one_line(vllm: Vllm, servetop: Servetop) -> None:
    done = servetop(*managed(vllm, vllm.api_server), "--num-prompts", "1", "--headless", "--", "--no-such-flag")
    assert done.code == 3
    last = [line for line in done.err.splitlines() if line.startswith("servetop:")]
    assert len(last) == 1
    assert "no-such-flag" in last[0]
