"""TGI, TensorRT-LLM, SGLang and DeepSpeed-MII: start, recognition, and the reasons of failed starts."""

from __future__ import annotations

import gc
import gzip
import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from servetop.core.config import EngineConfig
from servetop.core.errors import EngineError, UsageError
from servetop.engines.adapters.tensorrt_llm import with_options
from servetop.engines.control.control_client import HttpResult
from servetop.engines.engine import LaunchCommand
from servetop.engines.engine_registry import engine_names, load_engine
from tests.harness import wait_for

DATA = Path(__file__).parent / "data"
OURS = ("deepspeed-mii", "sglang", "tensorrt-llm", "tgi")
PYTHON = sys.executable
QUOTED_PYTHON = shlex.quote(PYTHON)


def launched(name: str, command: str, extra: str = "", **config: Any) -> LaunchCommand:
    settings = {"model": "org/m", "command": tuple(shlex.split(command)), "extra_args": tuple(extra.split()), **config}
    return load_engine(name).launch(EngineConfig(name=name, **settings), port=8123)


LAUNCHES = {
    ("tgi", "sh", "", 32): "sh --model-id org/m --hostname 127.0.0.1 --port 8123 --max-batch-size 32",
    ("tgi", "sh", "--model-id=org/x --num-shard 2", None): (
        "sh --hostname 127.0.0.1 --port 8123 --model-id=org/x --num-shard 2"
    ),
    ("sglang", QUOTED_PYTHON, "--tp 2", 32): (
        f"{PYTHON} -m sglang.launch_server --model-path org/m --host 127.0.0.1 --port 8123 "
        "--max-running-requests 32 --tp 2 --enable-metrics"
    ),
    ("sglang", "sh run.sh", "--host 0.0.0.0 --model_path org/x --enable-metrics", None): (
        "sh run.sh --port 8123 --host 0.0.0.0 --model_path org/x --enable-metrics"
    ),
    ("deepspeed-mii", QUOTED_PYTHON, "--tensor-parallel 2", None): (
        f"{PYTHON} -m mii.entrypoints.openai_api_server --model org/m --host 127.0.0.1 --port 8123 --tensor-parallel 2"
    ),
    ("tensorrt-llm", "sh", "--tp_size 2", 32): (
        "sh org/m --host 127.0.0.1 --port 8123 --max_batch_size 32 --tp_size 2 --extra_llm_api_options FILE"
    ),
}


@pytest.mark.parametrize("case", LAUNCHES, ids=lambda case: f"{case[0]} {case[2]}")
def test_the_command_line_has_each_option_once(case: tuple[str, str, str, int | None]) -> None:
    name, command, extra, max_num_seqs = case
    launch = launched(name, command, extra, max_num_seqs=max_num_seqs)
    argv = ["FILE" if arg.endswith(".yaml") else arg for arg in launch.argv]
    assert " ".join(argv) == LAUNCHES[case]
    assert (launch.host, launch.port) == ("127.0.0.1", 8123)


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("tgi", "text-generation-launcher --model-id org/m"),
        ("tensorrt-llm", "trtllm-serve org/m"),
        ("sglang", "python3 -m sglang.launch_server --model-path org/m"),
        ("deepspeed-mii", "python3 -m mii.entrypoints.openai_api_server --model org/m"),
    ],
)
def test_in_a_container_it_is_the_images_own_program(name: str, begins: str) -> None:
    argv = launched(name, "", launcher="docker", image="org/image").argv
    assert " ".join(argv).startswith(begins)
    assert not any(arg.endswith(".yaml") for arg in argv)


@pytest.mark.parametrize("name", OURS)
def test_a_missing_engine_is_reported_with_install_help(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert load_engine(name).installed() is None
    with pytest.raises(EngineError, match=r"was not found.*--engine sim"):
        launched(name, "")
    with pytest.raises(EngineError, match="/no/such/program cannot be found or run: check --engine-command"):
        launched(name, "/no/such/program serve")


def test_a_batch_size_given_in_the_engines_own_spelling_is_not_given_twice() -> None:
    with pytest.raises(UsageError, match="--max_batch_size is given twice, as 32 and after -- as 64"):
        launched("tensorrt-llm", "sh", "--max-batch-size 64", max_num_seqs=32)
    with pytest.raises(UsageError, match="DeepSpeed-MII has no option for a batch size"):
        launched("deepspeed-mii", QUOTED_PYTHON, max_num_seqs=32)


def test_tensorrt_llms_options_file_is_copied_for_the_lifetime_of_the_engine(tmp_path: Path) -> None:
    given = tmp_path / "own.yaml"
    given.write_text("kv_cache_config:\n  enable_block_reuse: true")
    engine = load_engine("tensorrt-llm")
    config = EngineConfig(name="tensorrt-llm", model="org/m", command=("sh",), extra_args=("--config", str(given)))
    argv = engine.launch(config, port=8123).argv
    assert "--config" not in argv
    copied = Path(argv[argv.index("--extra_llm_api_options") + 1])
    assert copied.read_text() == given.read_text() + "\nenable_iter_perf_stats: true\n"
    del engine
    wait_for(lambda: gc.collect() >= 0 and not copied.exists(), seconds=10, what="the removal of the copy")
    with pytest.raises(UsageError, match=r"no\.yaml cannot be read"):
        launched("tensorrt-llm", "sh", "--extra_llm_api_options /tmp/no.yaml")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "a: true\nb: true\n"),
        ("c: 1", "c: 1\na: true\nb: true\n"),
        ("a: false\n", "a: false\nb: true\n"),
        ('{"c": 1}', '{"a": true, "b": true, "c": 1}'),
        ('{"a": false}', '{"b": true, "a": false}'),
        ("c:\n  ba: 1\n", "c:\n  ba: 1\na: true\nb: true\n"),
    ],
)
def test_options_are_added_to_the_file_unless_it_sets_them(text: str, expected: str) -> None:
    assert with_options(text, ("a", "b")) == expected


def models(owner: str, name: str = "org/m") -> HttpResult:
    return HttpResult(200, json.dumps({"object": "list", "data": [{"id": name, "owned_by": owner}]}).encode())


def page(text: str) -> HttpResult:
    return HttpResult(200, text.encode())


INFO = {
    "model_id": "org/m", "max_concurrent_requests": 128, "max_best_of": 2, "max_total_tokens": 4096,
    "router": "text-generation-router", "version": "3.3.6-dev0",
}  # fmt: skip
SERVER_INFO = {
    "model_path": "org/m", "mem_fraction_static": 0.88, "max_running_requests": None, "context_length": 8192,
    "max_total_num_tokens": 51200, "page_size": 64, "version": "0.5.4",
    "internal_states": [{"effective_max_running_requests_per_dp": 256, "pp_max_micro_batch_size": 64}],
}  # fmt: skip
SERVERS: dict[str, dict[str, HttpResult]] = {
    "tgi": {"/info": page(json.dumps(INFO)), "/v1/models": models("org/m")},
    "sglang": {"/v1/models": models("sglang"), "/server_info": page(json.dumps(SERVER_INFO))},
    "tensorrt-llm": {
        "/version": page('{"version":"1.2.1"}'),
        "/v1/models": models("tensorrt_llm"),
        "/metrics": page("[]"),
    },
    "deepspeed-mii": {"/v1/models": models("deepspeed-mii")},
    "openai": {"/v1/models": models("acme"), "/metrics": page("go_goroutines 8\n")},
    "vllm": {
        "/version": HttpResult(200, (DATA / "vllm" / "version.json").read_bytes()),
        "/v1/models": HttpResult(200, (DATA / "vllm" / "v1_models.json").read_bytes()),
        "/metrics": HttpResult(200, (DATA / "vllm" / "metrics_0.32.0.txt").read_bytes()),
    },
    "triton": {
        "/metrics": HttpResult(200, (DATA / "triton" / "metrics_loaded.txt").read_bytes()),
        "/v2": HttpResult(200, (DATA / "triton" / "v2_server_metadata.json").read_bytes()),
    },
    "ray": {
        "/metrics": HttpResult(200, gzip.decompress((DATA / "ray-serve-llm" / "metrics_loaded.txt.gz").read_bytes()))
    },
    "llama.cpp": {"/metrics": HttpResult(200, (DATA / "llama.cpp" / "metrics_loaded.txt").read_bytes())},
    "nothing": {},
}


@pytest.mark.parametrize("server", SERVERS)
def test_each_engine_recognises_its_own_server_and_no_other(server: str) -> None:
    answers = {path: HttpResult(404) for name in engine_names() for path in load_engine(name).probe_paths}
    claims = {name: load_engine(name).match_score({**answers, **SERVERS[server]}) for name in OURS}
    assert {name for name, claim in claims.items() if claim} == {server} & set(OURS)


def test_what_the_servers_say_of_themselves() -> None:
    tgi = load_engine("tgi").facts(SERVERS["tgi"])
    assert (tgi.version, tgi.models, tgi.max_model_len, tgi.max_num_seqs) == ("3.3.6-dev0", ("org/m",), 4096, None)
    sglang = load_engine("sglang").facts(SERVERS["sglang"])
    assert (sglang.version, sglang.models, sglang.max_model_len) == ("0.5.4", ("org/m",), 8192)
    assert (sglang.max_num_seqs, sglang.kv_blocks_total, sglang.block_size, sglang.cache_page) == (64, 51200, 1, 64)
    older = {"/v1/models": models("sglang"), "/get_server_info": SERVERS["sglang"]["/server_info"]}
    assert load_engine("sglang").facts(older) == sglang
    assert load_engine("tensorrt-llm").facts(SERVERS["tensorrt-llm"]).version == "1.2.1"
    assert load_engine("deepspeed-mii").facts(SERVERS["deepspeed-mii"]).models == ("org/m",)


def test_what_their_logs_say_at_the_start() -> None:
    tgi = load_engine("tgi").boot_facts(["\x1b[32m INFO\x1b[0m Setting max batch total tokens to 46128"])
    assert (tgi.kv_blocks_total, tgi.block_size) == (46128, 1)
    line = (
        "[2026-01-08 12:00:00] max_total_num_tokens=51200, max_running_requests=256, context_len=8192, available=7.5 GB"
    )
    sglang = load_engine("sglang").boot_facts([line])
    assert (sglang.kv_blocks_total, sglang.max_num_seqs, sglang.max_model_len) == (51200, 256, 8192)
    trt = load_engine("tensorrt-llm").boot_facts(
        ["[TensorRT-LLM] TensorRT LLM version: 1.2.1", "[TRT-LLM] Number of blocks in KV cache primary pool: 710",
         "[TRT-LLM] Number of tokens per block: 32"])  # fmt: skip
    assert (trt.version, trt.kv_blocks_total, trt.block_size) == ("1.2.1", 710, 32)
    assert load_engine("deepspeed-mii").boot_facts(["all is well"]).version is None


FAILURES = [
    ("tgi", "error: unexpected argument '--max-seqs' found", "TGI rejects its options: unexpected"),
    ("tgi", "RuntimeError: Not enough memory to handle 4096 prefill tokens. You", "smaller --max-batch-prefill"),
    ("sglang", "launch_server.py: error: unrecognized arguments: --seqs 3", "unrecognized arguments: --seqs 3"),
    ("sglang", "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.", "raise --mem"),
    ("tensorrt-llm", "ValueError: No GPU devices found on the node", "it needs an NVIDIA GPU and finds none"),
    ("tensorrt-llm", "Error: No such option: --seqs", "it rejects its command line: No such option: --seqs"),
    ("tensorrt-llm", "RuntimeError: Failed to bind socket to 127.0.0.1:8000", "its port was taken by another process"),
    ("deepspeed-mii", "RuntimeError: server crashed for some reason, unable to proceed", "its model server died"),
    *((name, "OSError: [Errno 98] Address already in use", "its port was taken by another process") for name in OURS),
    *((name, "torch.OutOfMemoryError: CUDA out of memory. Tried", "out of GPU memory") for name in OURS),
    *((name, "huggingface_hub.errors.RepositoryNotFoundError: 404", "there is no such model") for name in OURS),
    *((name, "ModuleNotFoundError: No module named 'flashinfer'", "the Python package flashinfer is") for name in OURS),
]  # fmt: skip


@pytest.mark.parametrize(("name", "line", "words"), FAILURES)
def test_a_known_failure_is_reported_in_one_line(name: str, line: str, words: str) -> None:
    reason = load_engine(name).failure_reason(["INFO all is well", line, "INFO ending"])
    assert words in (reason or "")


def test_sglangs_batch_size_changes_while_it_runs_unless_a_restart_is_ours() -> None:
    engine = load_engine("sglang")
    change = engine.batch_size_change(16)
    assert change is not None
    assert (change.path, change.data) == ("/set_internal_state", {"server_args": {"pp_max_micro_batch_size": 16}})
    engine.launch(EngineConfig(name="sglang", model="org/m", command=(PYTHON,)), port=8123)
    assert (engine.changes_batch_size_live, engine.batch_size_change(16)) == (False, None)
