"""transformers serve and servetop's own pipeline server: command lines, recognition, logs, captured answers."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest

from servetop.core.config import EngineConfig, WorkloadConfig
from servetop.core.errors import EngineError, UsageError
from servetop.core.interfaces.dialect import Prompt
from servetop.core.system.package_data import package_path
from servetop.engines.adapters.transformers import TransformersEngine
from servetop.engines.adapters.transformers_pipeline import SCRIPT, PipelineEngine
from servetop.engines.control.control_client import HttpResult
from servetop.engines.dialects.transformers_api import TransformersChatDialect, TransformersCompletionsDialect

DATA = Path(__file__).parent / "data" / "transformers"
PROMPT = Prompt(text="the quick", input_tokens=2, output_tokens=6)
WORDS = "--host 127.0.0.1 --port 8123"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An environment with `transformers` and `python` beside each other."""
    for name in ("transformers", "python"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    return tmp_path


def launched(
    engine: TransformersEngine | PipelineEngine, command: str, extra: str = "", most: int | None = None
) -> str:
    config = EngineConfig(
        name=engine.name, model="org/m", command=(command,), extra_args=tuple(extra.split()), max_num_seqs=most
    )
    return " ".join(engine.launch(config, port=8123).argv)


def test_it_serves_with_continuous_batching_by_default(folder: Path) -> None:
    script = str(folder / "transformers")
    engine = TransformersEngine()
    assert launched(engine, script) == f"{script} serve org/m --continuous-batching {WORDS}"
    assert engine.facts({}).models == ("org/m",)
    plain = launched(engine, script, "--no-continuous-batching")
    assert plain == f"{script} serve org/m {WORDS} --no-continuous-batching"
    python = launched(engine, sys.executable, "--port 8123 --host 0.0.0.0")
    assert python.startswith(
        f"{sys.executable} -m transformers.cli.transformers serve org/m --continuous-batching --port"
    )


def test_a_batch_size_that_it_does_not_have_is_refused(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"has no limit of sequences in a batch: .* --cb-max-batch-tokens"):
        launched(TransformersEngine(), str(folder / "transformers"), most=8)
    with pytest.raises(UsageError, match="--engine transformers-pipeline"):
        launched(TransformersEngine(), str(folder / "transformers"), "--batching none")


@pytest.mark.parametrize("command", ["transformers", "python"])
def test_the_pipeline_runs_with_the_python_that_has_transformers(folder: Path, command: str) -> None:
    words = launched(PipelineEngine(), str(folder / command), "--batching none --device cpu", most=4)
    script = package_path("servetop.engines", SCRIPT)
    assert words == f"{folder / 'python'} {script} org/m {WORDS} --max-num-seqs 4 --batching none --device cpu"
    assert script.is_file()


def test_an_invalid_configuration_is_reported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="--batching 'continuous': give dynamic or none"):
        launched(PipelineEngine(), str(folder / "python"), "--batching continuous")
    (folder / "python").unlink()
    with pytest.raises(EngineError, match="there is no Python beside"):
        launched(PipelineEngine(), str(folder / "transformers"))
    with pytest.raises(EngineError, match=r"/no/such cannot be found or run: check --engine-command"):
        launched(TransformersEngine(), "/no/such")
    monkeypatch.setenv("PATH", "/nowhere")
    if importlib.util.find_spec("transformers") is None:
        with pytest.raises(EngineError, match=r"pip install 'transformers\[serving\]' accelerate"):
            TransformersEngine().launch(EngineConfig(name="transformers", model="org/m"), port=1)


def test_it_is_recognised_by_what_it_takes_as_a_post_only() -> None:
    health = HttpResult(200, b'{"status":"ok"}')
    posted = {path: HttpResult(405, b"") for path in ("/load_model", "/reset")}
    answers = {**posted, "/health": health, "/metrics": HttpResult(404, b"")}
    assert TransformersEngine().match_score(answers) == 2
    assert TransformersEngine().match_score({**answers, "/reset": HttpResult(404)}) == 0
    assert TransformersEngine().match_score({**answers, "/metrics": HttpResult(200, b"vllm:")}) == 0


def test_the_pipeline_is_recognised_by_the_owner_of_its_models() -> None:
    models = b'{"object": "list", "data": [{"id": "m", "owned_by": "servetop-pipeline", "max_model_len": 64}]}'
    answers = {"/v1/models": HttpResult(200, models)}
    assert PipelineEngine().match_score(answers) == 2
    assert (PipelineEngine().facts(answers).models, PipelineEngine().facts(answers).max_model_len) == (("m",), 64)
    facts = PipelineEngine().boot_facts(
        ["Loading weights: 100%", "servetop pipeline: dynamic batching of 4, transformers 5.19.0"]
    )
    assert (facts.max_num_seqs, facts.version) == (4, "5.19.0")


@pytest.mark.parametrize("dialect", [TransformersCompletionsDialect("m"), TransformersChatDialect("m")])
def test_rejected_fields_are_sent_only_by_extra_body(
    dialect: TransformersCompletionsDialect | TransformersChatDialect,
) -> None:
    body = json.loads(dialect.body(PROMPT, WorkloadConfig(n=2, temperature=0.5)))
    assert sorted(set(body) - {"prompt", "messages"}) == ["max_tokens", "model", "stream", "temperature"]
    assert "n" in json.loads(dialect.body(PROMPT, WorkloadConfig(extra_body={"n": 2})))


@pytest.mark.parametrize("size", [1, 11, 100_000])
@pytest.mark.parametrize("name", ["cb_completions", "plain_completions", "cb_chat", "plain_chat"])
def test_an_answer_ends_with_its_counts(name: str, size: int) -> None:
    dialect = (TransformersChatDialect if "chat" in name else TransformersCompletionsDialect)("m")
    body = (DATA / f"{name}_stream.txt").read_bytes()
    parser = dialect.parser(keep_texts=True)
    chunks = [chunk for at in range(0, len(body), size) for chunk in parser.feed(body[at : at + size])]
    assert [chunk.tokens for chunk in chunks] == [1, 1, 1, 1, 1, 1, 0]
    assert [chunk.final for chunk in chunks] == [False] * 6 + [True]
    assert (chunks[-1].prompt_tokens, chunks[-1].output_tokens) == (3, 6)


def test_the_cause_of_a_captured_failure_is_one_line() -> None:
    reason = TransformersEngine().failure_reason((DATA / "plain_server.log").read_text().splitlines())
    assert reason == "the Python package accelerate is missing in its environment: pip install it"
    assert TransformersEngine().failure_reason((DATA / "sig_plain.log").read_text().splitlines()) is None
