"""Triton's command line, responses, metrics and log, as captured from a real tritonserver."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest

from servetop.core.config import EngineConfig
from servetop.core.errors import EngineError, UsageError
from servetop.core.events import EngineSample
from servetop.engines.adapters.triton import TritonEngine
from servetop.engines.control.control_client import HttpResult
from servetop.engines.engine import LaunchCommand
from servetop.engines.metrics.triton_metrics import TritonPages

DATA = Path(__file__).parent / "data" / "triton"
LOADED = (DATA / "metrics_loaded.txt").read_bytes()
KV = 'nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="%s",model="tensorrt_llm",version="1"} %s'


@pytest.fixture
def repository(tmp_path: Path) -> str:
    """A repository with a model `chatty`, which takes text, and one that does not."""
    for name, field in (("chatty", "text_input"), ("embedder", "input_ids")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.pbtxt").write_text(f'name: "{name}" input [ {{ name: "{field}" }} ]')
    return str(tmp_path)


def launched(model: str, *extra: str, max_num_seqs: int | None = None) -> LaunchCommand:
    config = EngineConfig(
        name="triton-tensorrt-llm", model=model, command=(sys.executable,), extra_args=extra, max_num_seqs=max_num_seqs
    )
    return TritonEngine().launch(config, port=8123)


def test_a_model_repository_is_served_on_three_ports_of_the_loopback(repository: str) -> None:
    command = launched(repository)
    words = " ".join(command.argv[1:])
    addresses = "--http-address 127.0.0.1 --grpc-address 127.0.0.1 --metrics-address 127.0.0.1"
    assert words.startswith(f"--model-repository {repository} {addresses} --http-port 8123 --grpc-port ")
    assert words.endswith(f"--metrics-port {command.metrics_port}")
    assert command.metrics_port not in (None, 8123)


def test_what_the_user_gives_after_the_dashes_is_not_given_twice(repository: str) -> None:
    command = launched("", f"--model-repository={repository}", "--metrics-port=18777", "--http-address", "0.0.0.0")
    assert (command.metrics_port, command.host, command.port) == (18777, "127.0.0.1", 8123)
    assert sum("repository" in word for word in command.argv) == 1


def test_an_invalid_configuration_is_reported_before_the_start(repository: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no folder 'llama-2-7b': for Triton --model is the folder of"):
        launched("llama-2-7b")
    with pytest.raises(UsageError, match="tritonserver has no option for the batch size: set triton_max_batch_size"):
        launched(repository, max_num_seqs=8)
    (tmp_path / "chatty" / "config.pbtxt").unlink()
    with pytest.raises(EngineError, match=r"no model in .* accepts text"):
        launched(repository)


def test_a_taken_metrics_port_is_reported_before_triton_starts(repository: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(EngineError, match=rf"port {port} \(--metrics-port\) is in use by .*: give another"):
            launched(repository, f"--metrics-port={port}")


def test_a_missing_server_is_reported_with_the_option_to_set(repository: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(EngineError, match=r"no tritonserver on the PATH.*or --engine-command"):
        TritonEngine().launch(EngineConfig(name="triton-tensorrt-llm", model=repository), port=1)


def test_a_server_is_detected_by_its_name_and_reports_the_usual_models_with_text_input() -> None:
    answers = {
        "/v2": HttpResult(200, (DATA / "v2_server_metadata.json").read_bytes()),
        "/v2/models/ensemble/config": HttpResult(200, (DATA / "model_config.json").read_bytes()),
        "/v2/models/tensorrt_llm/config": HttpResult(404, b'{"error":"Request for unknown model"}'),
    }
    engine = TritonEngine()
    assert engine.match_score(answers) == 2
    assert (engine.facts(answers).version, engine.facts(answers).models) == ("2.51.0", ("ensemble",))
    assert engine.match_score({"/v2": HttpResult(200, b'["triton"]')}) == 0


def test_a_started_server_serves_the_model_of_its_repository(repository: str) -> None:
    engine = TritonEngine()
    config = EngineConfig(name="triton-tensorrt-llm", model=repository, command=(sys.executable,))
    engine.launch(config, port=8123)
    assert engine.facts({}).models == ("chatty",)


def test_metrics_are_two_ports_above_http() -> None:
    assert TritonEngine().metrics_url("http://gpu7:8000") == "http://gpu7:8002"
    assert TritonEngine().metrics_url("http://gpu7") == "http://gpu7:8002"
    assert TritonEngine().metrics_url("http://[::1]:9000/x") == "http://[::1]:9002"


def test_a_loaded_server_is_read_number_for_number() -> None:
    assert TritonPages().sample({"/metrics": LOADED}, start=1.0, end=1.5) == EngineSample(
        scrape_start=1.0,
        scrape_end=1.5,
        running=7.0,
        waiting=5.0,
        kv_blocks_used=63.0,
        kv_blocks_total=64.0,
        kv_usage=63 / 64,
        requests_finished_total=54.0,
        max_num_seqs=8.0,
        requests_ended_total=54.0,
        requests_failed_total=0.0,
    )
    facts = TritonPages().facts({"/metrics": LOADED})
    assert (facts.kv_blocks_total, facts.block_size, facts.max_num_seqs) == (64, 16, 8)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (KV % ("used", 63), KV % ("used", 65)),
        (KV % ("fraction", 0.984375), KV % ("fraction", 63)),
    ],
)
def test_a_kv_cache_with_contradictory_values_is_discarded(right: str, wrong: str) -> None:
    page = LOADED.replace(right.encode(), wrong.encode())
    assert page != LOADED
    sample = TritonPages().sample({"/metrics": page}, start=0.0, end=0.0)
    assert sample is not None
    assert (sample.kv_blocks_used, sample.kv_blocks_total, sample.kv_usage, sample.running) == (None, None, None, 7.0)
    assert TritonPages().facts({"/metrics": page}).kv_blocks_total is None


def test_tokens_are_the_sums_of_its_length_histograms_and_an_ensembles_parts_count_no_request_twice() -> None:
    page = LOADED + (
        b'nv_inference_request_success{model="tensorrt_llm",version="1"} 54\n'
        b'nv_llm_input_token_len_sum{model="tensorrt_llm",version="1"} 648\n'
        b'nv_llm_output_token_len_sum{model="tensorrt_llm",version="1"} 2700\n'
    )
    sample = TritonPages().sample({"/metrics": page}, start=0.0, end=0.0)
    assert sample is not None
    assert (sample.prompt_tokens_total, sample.generation_tokens_total) == (648, 2700)
    assert sample.requests_finished_total == 54
    assert TritonPages().sample({"/metrics": b"vllm:num_requests_running 1\n"}, start=0.0, end=0.0) is None


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (
            "E1121 20:53:08.13 15606 model.cc:642] \"failed to load 'ensemble' version 1: Internal: no engine\"",
            'model ensemble: Internal: no engine"',
        ),
        ("error: creating server: Internal - failed to load all models", "Internal - failed to load all models"),
        ("tritonserver: unrecognized option '--nope=3'", "it rejects its option --nope=3"),
        (
            'E1121 20:53:17.307562 15872 main.cc:293] "failed to start HTTP service: Unavailable - '
            "Socket '127.0.0.1:18222' already in use \"",
            "one of its ports is taken",
        ),
    ],
)
def test_the_cause_of_a_failed_start_is_one_line(line: str, reason: str) -> None:
    found = TritonEngine().failure_reason([line])
    assert found is not None
    assert found.startswith(reason)


def test_a_start_without_failure_has_no_cause() -> None:
    assert TritonEngine().failure_reason((DATA / "server.log").read_text().splitlines()) is None
