"""What the configurations of a series are, as its tables repeat it."""

from __future__ import annotations

from servetop.cli.pairs.arm_texts import arm_texts
from servetop.core.config import EngineConfig, RunConfig, StageConfig
from servetop.run.pairs.series_folder import ArmConfigs


def config(batch: int | None, *args: str, label: str = "") -> RunConfig:
    engine = EngineConfig(name="vllm", model="llama-2-7b", extra_args=args)
    stage = StageConfig(request_rate=8.0, duration=30.0, max_num_seqs=batch)
    return RunConfig(engine=engine, stages=(stage,), label=label)


def test_engine_model_and_what_differs_are_repeated() -> None:
    a, b = arm_texts(ArmConfigs(a=config(32, "--max-num-batched-tokens", "2048"), b=config(32, label="main")))
    assert a == "vllm · llama-2-7b · engine.args.max-num-batched-tokens 2048"
    assert b == "main · vllm · llama-2-7b · engine.args.max-num-batched-tokens not set"


def test_secrets_are_not_printed() -> None:
    texts = arm_texts(ArmConfigs(a=config(32, "--api-key", "sk-one"), b=config(32, "--api-key", "sk-two")))
    assert "sk-" not in "".join(texts)
