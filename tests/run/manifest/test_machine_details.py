"""The parts of a manifest that this machine decides."""

from dataclasses import replace
from pathlib import Path

from servetop.core.config import EngineConfig, RunConfig, StageConfig, WorkloadConfig
from servetop.run.manifest.machine_details import machine_details


def test_files_of_model_tokenizer_and_data_are_read(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "tokenizer.json").write_text("t")
    (tmp_path / "prompts.jsonl").write_text("{}")
    config = RunConfig(
        engine=EngineConfig(name="vllm", model=str(tmp_path)),
        workload=WorkloadConfig(dataset_path=str(tmp_path / "prompts.jsonl"), tokenizer=str(tmp_path)),
    )
    found = dict(machine_details(config, {}))
    assert found["model"]["path"] == str(tmp_path)
    assert {name: list(files) for name, files in found["workload"].items()} == {
        "dataset": ["prompts.jsonl"],
        "tokenizer": ["tokenizer.json"],
    }
    attached = replace(config, engine=EngineConfig(name="auto", model=str(tmp_path), url="http://gpu7.invalid:1"))
    assert {"model", "gpu"} & set(dict(machine_details(attached, {}))) == set()


def test_a_model_that_the_engine_will_refuse_leaves_out_its_part_only() -> None:
    config = RunConfig(engine=EngineConfig(name="vllm", model="no-such-alias"))
    found = dict(machine_details(config, {}))
    assert "model" not in found
    assert "container" in found["host"]


def test_the_datasets_of_all_cells_are_read(tmp_path: Path) -> None:
    paths = [tmp_path / folder / "prompts.jsonl" for folder in ("a", "b")]
    for path in paths:
        path.parent.mkdir()
        path.write_text(path.parent.name)
    stages = [StageConfig(num_prompts=1, settings={"dataset_path": str(path)}) for path in paths]
    config = RunConfig(workload=WorkloadConfig(dataset_path=str(paths[0])), stages=tuple(stages))
    assert list(dict(machine_details(config, {}))["workload"]["dataset"]) == [
        "prompts.jsonl",
        f"{paths[1]}: prompts.jsonl",
    ]
