"""llama.cpp's command line, responses, metrics and log, as captured from a real llama-server."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from servetop.core.config import EngineConfig
from servetop.core.errors import EngineError, UsageError
from servetop.core.events import EngineSample
from servetop.engines.adapters.llama_cpp import LlamaCppEngine
from servetop.engines.control.control_client import HttpResult
from servetop.engines.metrics.llama_cpp_metrics import LlamaCppPages

DATA = Path(__file__).parent / "data" / "llama.cpp"


def body(name: str) -> bytes:
    raw = (DATA / name).read_bytes()
    return raw.replace(b"\r\n", b"\n").partition(b"\n\n")[2] if raw.startswith(b"HTTP/") else raw


LOADED = {"/metrics": body("metrics_loaded_mid.txt"), "/slots": body("slots_loaded.json")}
ANSWERS = {"/props": HttpResult(200, body("props_idle.txt")), "/v1/models": HttpResult(200, body("v1_models_idle.txt"))}


@pytest.fixture
def gguf(tmp_path: Path) -> str:
    model = tmp_path / "tiny.gguf"
    model.write_bytes(b"GGUF")
    return str(model)


def launched(model: str, *extra: str, max_num_seqs: int | None = None) -> tuple[str, bool | None]:
    engine = LlamaCppEngine()
    command = (sys.executable,)
    config = EngineConfig(name="llama.cpp", model=model, command=command, extra_args=extra, max_num_seqs=max_num_seqs)
    words = engine.launch(config, port=8123).argv
    assert words[0] == sys.executable
    return " ".join(words[1:]), engine.metrics().shared


def test_a_model_file_is_served_with_metrics_on(gguf: str) -> None:
    argv, shared = launched(gguf, "-c", "4096", max_num_seqs=8)
    assert argv == f"--model {gguf} --host 127.0.0.1 --port 8123 --parallel 8 --ctx-size 4096 --metrics"
    assert shared is False


@pytest.mark.parametrize(
    ("extra", "shared"),
    [([], True), (["-np", "2"], False), (["-np", "2", "-kvu"], True), (["--no-kv-unified"], False)],
)
def test_slots_share_one_cache_by_default(gguf: str, extra: list[str], shared: bool) -> None:
    assert launched(gguf, *extra)[1] is shared


def test_a_hub_name_is_fetched_by_the_server_itself_and_what_the_user_gives_is_not_given_twice() -> None:
    assert launched("ggml-org/gemma-3-1b-it-GGUF")[0].startswith("--hf-repo ggml-org/gemma-3-1b-it-GGUF --host ")
    argv, _ = launched("", "-m", "/m.gguf", "--metrics", "-np", "3", max_num_seqs=3)
    assert argv == "--host 127.0.0.1 --port 8123 --model /m.gguf --metrics --parallel 3"


@pytest.mark.parametrize("model", ["llama-2-7b", "/nope.gguf", "", "a/b.gguf"])
def test_a_missing_model_file_is_reported(model: str) -> None:
    with pytest.raises(UsageError, match=r"llama\.cpp takes the path of a GGUF file, or user/repository"):
        launched(model)


def test_a_missing_server_is_reported_with_the_option_to_set(gguf: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert LlamaCppEngine().installed() is None
    with pytest.raises(EngineError, match=r"no llama-server on the PATH.*or set --engine-command"):
        LlamaCppEngine().launch(EngineConfig(name="llama.cpp", model=gguf), port=1)


def test_a_server_is_detected_by_either_response_and_reports_its_slots() -> None:
    engine = LlamaCppEngine()
    assert [engine.match_score({path: answer}) for path, answer in ANSWERS.items()] == [2, 2]
    facts = engine.facts(ANSWERS)
    assert (facts.version, facts.models, facts.max_num_seqs, facts.max_model_len) == ("b1-0c1e570", ("tiny",), 4, 1024)


def test_a_loaded_server_is_read_number_for_number() -> None:
    held = 206.0 + 206 + 206 + 75  # prompt and answer so far of each slot
    assert LlamaCppPages(shared=False).sample(LOADED, start=1.0, end=1.5) == EngineSample(
        scrape_start=1.0,
        scrape_end=1.5,
        running=4.0,
        waiting=1.0,
        kv_blocks_used=held,  # a block is a token
        kv_blocks_total=4096.0,
        kv_usage=held / 4096,
        prompt_tokens_total=1271.0 + 15,
        generation_tokens_total=32620.0,
        prefix_cache_hits_total=15.0,
        prefix_cache_queries_total=1271.0 + 15,
        max_num_seqs=4.0,
    )


def test_prompt_tokens_found_in_a_slot_are_prompt_tokens_too() -> None:
    sample = LlamaCppPages(shared=False).sample({"/metrics": body("metrics_loaded.txt")}, start=0.0, end=0.0)
    assert sample is not None
    assert (sample.prompt_tokens_total, sample.prefix_cache_hits_total) == (2625 + 31, 31)
    assert sample.generation_tokens_total == 67420
    assert (sample.kv_usage, sample.max_num_seqs) == (None, None)  # without /slots


@pytest.mark.parametrize(("shared", "total"), [(False, 4096), (True, 1024), (None, None)])
def test_the_cache_size_is_reported_only_if_it_is_known(shared: bool | None, total: int | None) -> None:
    facts = LlamaCppPages(shared).facts(LOADED)
    assert (facts.kv_blocks_total, facts.block_size, facts.max_num_seqs) == (total, 1, 4)


def test_idle_slots_use_nothing_and_a_page_of_others_is_not_read() -> None:
    idle = {"/metrics": body("metrics_idle.txt"), "/slots": body("slots_idle.txt")}
    sample = LlamaCppPages(shared=False).sample(idle, start=0.0, end=0.0)
    assert sample is not None
    assert (sample.kv_usage, sample.kv_blocks_used, sample.running) == (0.0, 0.0, 0.0)
    assert LlamaCppPages().sample({"/metrics": b"vllm:num_requests_running 1\n"}, start=0.0, end=0.0) is None
    broken = LlamaCppPages().sample({**idle, "/slots": b'[{"n_ctx": "x"}, 7]'}, start=0.0, end=0.0)
    assert broken is not None
    assert broken.kv_blocks_total is None


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        ("fail_badmodel.log", "there is no model file /tmp/nope.gguf: give --model with the path of a GGUF file"),
        ("fail_portinuse.log", "its port was taken by another process: choose another with --port"),
    ],
)
def test_the_cause_of_a_captured_failure_is_one_line(log: str, reason: str) -> None:
    assert LlamaCppEngine().failure_reason((DATA / log).read_text().splitlines()) == reason


def test_other_causes_and_none() -> None:
    reason = LlamaCppEngine().failure_reason
    assert reason(["error: invalid argument: --nope"]) == "llama-server rejects its command line: " + (
        "invalid argument: --nope"
    )
    magic = "0.00.032.571 E gguf_init_from_reader: invalid magic characters: 'vers', expected 'GGUF'"
    assert reason([magic]) == "not a model that it can load: " + magic.partition(" E ")[2]
    assert reason(["0.00.042.442 I srv  llama_server: model loaded"]) is None
