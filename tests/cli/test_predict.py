"""`servetop predict` and `servetop validate` at the command line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from servetop.cli.configuration.sweep_file import read_sweep
from servetop.cli.configuration.sweep_plan import sweep_config
from servetop.run.sweep.presets import preset_names
from tests.harness import CommandInProcess, Servetop

CELL_KEYS = {
    "engine", "model", "gpu", "max_num_seqs", "request_rate", "output_throughput", "total_token_throughput",
    "preemptions", "recomputed_tokens", "duration", "completed", "kv_blocks_total", "max_kv_usage", "mean_running",
    "ttft_ms", "itl_ms", "e2el_ms",
}  # fmt: skip
SMALL = ("--num-prompts", "60", "--max-num-seqs", "4,8", "--request-rate", "8,inf", "--output-len", "16")


def test_plain_options_describe_a_grid(servetop: Servetop) -> None:
    found = servetop("predict", "--json", *SMALL).summary
    assert [(cell["max_num_seqs"], cell["request_rate"]) for cell in found["cells"]] == [
        (4, 8), (4, "inf"), (8, 8), (8, "inf"),
    ]  # fmt: skip
    for cell in found["cells"]:
        assert set(cell) >= CELL_KEYS
        assert set(cell["ttft_ms"]) >= {"p50", "p90", "p99", "mean"}
        assert cell["completed"] == 60
    assert found["simulated_s"] > 0


@pytest.fixture
def trace(tmp_path: Path) -> str:
    """A trace of 40 requests, two a second, with outputs of 4 to 7 tokens."""
    rows = [{"timestamp": number / 2, "input_length": 100, "output_length": 4 + number % 4} for number in range(40)]
    path = tmp_path / "trace.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return str(path)


def test_a_trace_is_predicted_at_its_own_times_and_lengths(command: CommandInProcess, trace: str) -> None:
    words = ("predict", "--dataset-name", "timed_trace", "--dataset-path", trace, "--json")
    (own,) = command(*words).summary["cells"]
    assert own["completed"] == 40
    assert own["request_rate"] == pytest.approx(2.0, rel=0.05)
    assert own["duration"] == pytest.approx(20.0, rel=0.1)
    assert own["output_throughput"] * own["duration"] == pytest.approx(40 * 5.5)
    slow, fast = command(*words, "--request-rate", "1,4", "--num-prompts", "20").summary["cells"]
    assert slow["completed"] == fast["completed"] == 20
    assert slow["duration"] == pytest.approx(4 * fast["duration"], rel=0.15)


def test_lengths_of_a_dataset_and_shared_prefixes_are_predicted(command: CommandInProcess) -> None:
    words = ("predict", "--num-prompts", "100", "--request-rate", "4", "--json")
    long = ("--engine-profile", "vllm-current", "--input-len", "1000")
    plain, spread, uncached, cached = (
        command(*words, *more).summary["cells"][0]
        for more in ((), ("--lengths", "sharegpt"), long, (*long, "--cache-hit-rate", "0.75"))
    )
    assert spread["e2el_ms"]["p99"] > 2 * spread["e2el_ms"]["p50"]
    assert plain["e2el_ms"]["p99"] < 2 * plain["e2el_ms"]["p50"]
    assert cached["ttft_ms"]["p50"] < 0.8 * uncached["ttft_ms"]["p50"]


def test_a_sweep_file_is_predicted_by_its_name_as_it_is_swept(command: CommandInProcess, tmp_path: Path) -> None:
    file = tmp_path / "grid.toml"
    file.write_text("request_rate = [4, 8]\nmax_num_seqs = [4]\nnum_prompts = 20\n")
    assert [cell["request_rate"] for cell in command("predict", str(file), "--json").summary["cells"]] == [4, 8]
    both = command("predict", str(file), "--preset", "whitepaper-1")
    assert (both.code, both.complaint) == (2, f"{file} and --preset whitepaper-1 exclude each other: use one of them")


def test_the_answer_comes_first_in_one_sentence(command: CommandInProcess, tmp_path: Path) -> None:
    words = ("predict", *SMALL, "--goodput", "ttft:500", "tpot:200")
    answer = command(*words, "--json").summary["answer"]
    assert command(*words).out.splitlines()[0] == answer["text"]
    assert answer["text"].startswith("largest load within TTFT ≤ 500 ms, TPOT ≤ 200 ms: 8 req/s at batch ")
    file = tmp_path / "grid.toml"
    file.write_text('request_rate = [4]\nmax_num_seqs = [4]\nnum_prompts = 20\ngoodput = ["ttft:400"]\n')
    assert "TTFT ≤ 400 ms" in command("predict", str(file)).out.splitlines()[0]
    assert "TTFT ≤ 300 ms" in command("predict", str(file), "--goodput", "ttft:300").out.splitlines()[0]


def test_a_recorded_prediction_is_summarised_like_a_run(command: CommandInProcess, tmp_path: Path) -> None:
    file = str(tmp_path / "predicted.servetop")
    words = ("predict", "--num-prompts", "40", "--request-rate", "8", "--output-len", "16", "--record", file)
    assert command(*words).out.splitlines()[-1] == f"recording  {file}"
    assert "llama-2-7b (predicted)" in command("summary", file).out
    assert command("summary", file, "--json").summary["completed"] == 40
    assert "already exists" in command(*words).complaint


LOAD = ("--num-prompts", "300", "--max-num-seqs", "256", "--request-rate", "40", "--input-len", "300")


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    return CommandInProcess(tmp_path_factory.mktemp("recordings"))("predict", "--json", *LOAD).summary


@pytest.mark.parametrize(
    "setting",
    [
        "kv_blocks=500", "watermark=0.05", "block_size=32", "c0=0.002", "c1=0.0005", "gpu.bandwidth=1e12",
        "gpu.flops=1e14", "tile=64", "policy=swap", "max_num_batched_tokens=512", "time_scale=2", "seed=7",
    ],
)  # fmt: skip
def test_every_documented_setting_changes_the_prediction(
    command: CommandInProcess, plain: Mapping[str, Any], setting: str
) -> None:
    changed = command("predict", "--json", *LOAD, "--set", setting).summary
    assert plain["cells"][0]["e2el_ms"] != changed["cells"][0]["e2el_ms"]


def test_time_scale_multiplies_every_duration(command: CommandInProcess) -> None:
    (once,) = command("predict", "--json", "--num-prompts", "50", "--request-rate", "4").summary["cells"]
    words = ("--num-prompts", "50", "--request-rate", "4", "--set", "time_scale=3")
    (thrice,) = command("predict", "--json", *words).summary["cells"]
    assert thrice["duration"] == pytest.approx(3 * once["duration"])
    assert thrice["ttft_ms"]["p99"] == pytest.approx(3 * once["ttft_ms"]["p99"])


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--model", "llama-2-70b"), "GB for weights; A100-40GB has"),
        (("--set", "kv_bloks=3"), "did you mean 'kv_blocks'"),
        (("--set", "kv_blocks"), "KEY=VALUE"),
        (("--gpu", "a100-4"), "a100-40"),
        (("--request-rate", "fast"), "numbers above 0"),
        (("--preset", "whitepaper-9"), "did you mean whitepaper-"),
        (("--preset", "whitepaper-2", "--model", "opt-125m"), "--set"),
        (("--arrivals", "sometimes"), "known are"),
        (("--dataset-name", "timed_trace"), "reads a file: give --dataset-path"),
        (("--preset", "whitepaper-2", "--lengths", "sharegpt"), "leave out --lengths"),
    ],
)
def test_what_cannot_be_predicted_is_told_in_one_line(
    command: CommandInProcess, words: tuple[str, ...], complaint: str
) -> None:
    done = command("predict", *words)
    assert done.code == 2, done.err
    assert complaint in done.complaint


def test_every_preset_is_a_sweep_file_too() -> None:
    for name in preset_names():
        assert sweep_config(read_sweep(name)).label == name


def test_a_study_is_named_by_its_number_and_the_simulator_takes_its_gpu(command: CommandInProcess) -> None:
    assert command("predict", "--preset", "whitepaper-1", "--set", "max_num_seqs=8", "--json").code == 0
    sweep = read_sweep("whitepaper-1")
    assert sweep.label == "whitepaper-1-vllm"
    assert sweep.sim["gpu"] == "a100-40"


@pytest.mark.integration
def test_the_simulator_meets_every_target_on_the_published_tables(servetop: Servetop) -> None:
    done = servetop("validate", "--json")
    assert done.code == 0, done.err
    assert done.summary["passed"]
    assert {table["name"] for table in done.summary["tables"]} >= {"table4", "table5", "table8", "table14"}
