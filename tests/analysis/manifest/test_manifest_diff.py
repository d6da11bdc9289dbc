"""What differs between two runs, and what that means."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from servetop.analysis.manifest.manifest_diff import DifferenceKind, comparable, manifest_differences
from servetop.core.clock import ClockAnchor
from servetop.core.config import EngineConfig, RunConfig, StageConfig, WorkloadConfig
from servetop.core.interfaces.run_source import EngineFacts, RunHeader

ARGV = ["/venv/bin/vllm", "serve", "/models/llama", "--max-num-batched-tokens", "8192", "--port", "{port}"]
GPU = {"name": "NVIDIA H100", "memory": 85899345920, "power_limit": 700.0, "clocks": {"sm_max": 1980000000.0}}
FILES = {"config.json": {"size": 600, "sha256": "ab" * 32}}
MANIFEST: Mapping[str, Any] = {
    "command_line": ["servetop", "--label", "first"],
    "engine": {"argv": ARGV, "executable": ARGV[0], "environment": {"VLLM_USE_V1": "1"}},
    "gpu": {"driver": "550.54", "devices": [GPU]},
    "model": {"path": "/models/llama", "config": FILES, "tokenizer": FILES, "weights": {"a.gguf": {"size": 9}}},
    "workload": {"dataset": {"prompts.jsonl": {"size": 10, "sha256": "ef" * 32}}},
    "host": {"cpu": "EPYC 9654"},
}
FACTS = EngineFacts(name="vllm", title="vLLM", version="0.10.1", model="/models/llama", kv_blocks_total=9000, pid=7)
RUN = RunHeader(
    config=RunConfig(
        engine=EngineConfig(name="vllm", model="/models/llama"),
        workload=WorkloadConfig(dataset="sharegpt", dataset_path="/data/prompts.jsonl"),
        stages=(StageConfig(duration=10.0),),
    ),
    anchor=ClockAnchor(origin_ns=1, wall_epoch_s=1.7e9),
    versions={"servetop": "0.1", "python": "3.12.3", "textual": "1.0"},
    host={"name": "gpu7", "processors": 8, "memory": 1 << 36, "system": "Linux-6.8"},
    engine=FACTS,
    manifest=MANIFEST,
)


def changed(path: str, value: Any, base: Mapping[str, Any] = MANIFEST) -> dict[str, Any]:
    """The manifest with one value, at a path such as `gpu.driver`, replaced; None removes it."""
    name, _, inner = path.partition(".")
    new = dict(base)
    if inner:
        new[name] = changed(inner, value, base[name])
    elif value is None:
        new.pop(name)
    else:
        new[name] = value
    return new


def with_manifest(path: str, value: Any) -> RunHeader:
    return replace(RUN, manifest=changed(path, value))


def with_config(**fields: Any) -> RunHeader:
    return replace(RUN, config=replace(RUN.config, **fields))


def found(a: RunHeader, b: RunHeader) -> list[tuple[str, str, str | None, str | None]]:
    return [(each.key, str(each.kind), each.a, each.b) for each in manifest_differences(a, b)]


def test_a_second_start_of_the_same_run_does_not_differ() -> None:
    config = replace(
        RUN.config, label="again", metadata={"node": "x"}, stages=(), engine=replace(RUN.config.engine, port=8123)
    )
    again = replace(
        RUN,
        config=config,
        pid=99,
        anchor=ClockAnchor(origin_ns=5, wall_epoch_s=1.8e9),
        versions={**RUN.versions, "textual": "2.0"},
        engine=replace(FACTS, pid=8, url="http://127.0.0.1:8123"),
        manifest=changed("engine.argv", [*ARGV[:3], "--port", "{port}", "--max_num_batched_tokens=8192"])
        | {"command_line": ["servetop"]},
    )
    assert found(RUN, again) == []


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (
            with_manifest("engine.argv", [*ARGV, "--enforce-eager"]),
            ("engine.args.enforce-eager", "setting", "not set", "true"),
        ),
        (
            with_manifest("engine.argv", [*ARGV[:4], "4096"]),
            ("engine.args.max-num-batched-tokens", "setting", "8192", "4096"),
        ),
        (with_manifest("engine.environment", {}), ("engine.environment.VLLM_USE_V1", "setting", "1", "not set")),
        (replace(RUN, engine=replace(FACTS, version="0.11.0")), ("engine.version", "setting", "0.10.1", "0.11.0")),
        (replace(RUN, engine=replace(FACTS, kv_blocks_total=8000)), ("kv_blocks", "setting", "9000", "8000")),
        (with_manifest("gpu.driver", "560.1"), ("gpu.driver", "setting", "550.54", "560.1")),
        (
            with_manifest("gpu.devices", [{**GPU, "clocks": {"sm_max": 1755000000.0}}]),
            ("gpu.0.clocks.sm_max", "setting", "1980 MHz", "1755 MHz"),
        ),
        (with_manifest("gpu.devices", [GPU, GPU]), ("gpu.count", "setting", "1", "2")),
        (with_manifest("host.cpu", "Xeon"), ("host.cpu", "client", "EPYC 9654", "Xeon")),
        (replace(RUN, versions={**RUN.versions, "servetop": "0.2"}), ("servetop.version", "client", "0.1", "0.2")),
        (with_config(workers=4), ("client.workers", "client", "1", "4")),
        (with_config(seed=3), ("seed", "seed", "0", "3")),
        (
            with_config(workload=replace(RUN.config.workload, input_len=256)),
            ("workload.input_len", "workload", "128", "256"),
        ),
        (
            with_config(workload=replace(RUN.config.workload, ignore_eos=False)),
            ("workload.ignore_eos", "workload", "true", "false"),
        ),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)  # fmt: skip
def test_one_change_is_one_difference(other: RunHeader, expected: tuple[str, ...]) -> None:
    assert found(RUN, other) == [expected]
    assert bool(comparable(RUN, other)) == (expected[1] == "workload")


def test_models_of_equal_files_are_equal_whatever_their_name() -> None:
    argv = [each.replace("/models/llama", "/mnt/llama-copy") for each in ARGV]
    manifest = changed("model.path", "/mnt/llama-copy") | {"engine": {**MANIFEST["engine"], "argv": argv}}
    copy = replace(
        with_config(engine=EngineConfig(name="vllm", model="/mnt/llama-copy")),
        engine=replace(FACTS, model="/mnt/llama-copy"),
        manifest=manifest,
    )
    assert found(RUN, copy) == []
    without_weights = [replace(each, manifest=changed("model.weights", {}, each.manifest)) for each in (RUN, copy)]
    assert found(*without_weights) == []
    assert [each[0] for each in found(RUN, without_weights[1])] == ["model.name", "model.weights"]
    other = replace(copy, manifest=changed("model.tokenizer", {"tokenizer.json": {"size": 3}}, manifest))
    assert [(each.key, each.kind) for each in comparable(RUN, other)] == [("model.tokenizer", DifferenceKind.WORKLOAD)]


def test_a_dataset_counts_by_its_digest_and_without_one_by_its_name() -> None:
    moved = with_config(workload=replace(RUN.config.workload, dataset_path="/scratch/other.jsonl"))
    assert found(RUN, moved) == []
    unknown = replace(moved, manifest=changed("workload", None))
    assert [each.key for each in comparable(RUN, unknown)] == ["workload.dataset_path"]
    new_data = with_manifest("workload.dataset", {"prompts.jsonl": {"size": 10, "sha256": "00" * 32}})
    assert [each.key for each in comparable(RUN, new_data)] == ["workload.dataset_digest"]


def test_what_an_older_recording_lacks_is_unknown_and_options_given_by_the_user_are_compared() -> None:
    older = replace(with_config(engine=replace(RUN.config.engine, extra_args=("--enforce-eager",))), manifest={})
    differences = manifest_differences(RUN, older)
    assert [(each.key, each.b) for each in differences if not each.unknown] == [("engine.args.enforce-eager", "true")]
    unknown = [each.key for each in differences if each.unknown]
    assert unknown == [
        "model.config", "model.tokenizer", "model.weights", "workload.dataset_digest", "engine.executable",
        "engine.environment", "gpu", "host.cpu",
    ]  # fmt: skip


def test_an_attached_server_says_nothing_about_its_command_line() -> None:
    attached = replace(
        with_config(engine=EngineConfig(name="vllm", model="/models/llama", url="http://gpu7:8000")),
        manifest={name: MANIFEST[name] for name in ("workload", "host", "model", "gpu")},
    )
    assert found(RUN, attached) == [
        ("engine.host", "setting", "started by servetop", "gpu7"),
        ("engine.args", "setting", "recorded", None),
        ("engine.executable", "setting", "/venv/bin/vllm", None),
        ("engine.environment", "setting", "recorded", None),
    ]


def test_damaged_manifests_are_compared_as_far_as_they_are_readable() -> None:
    damaged = replace(RUN, manifest={"engine": [], "gpu": {"devices": [7]}, "model": {"config": {"x": 1}}, "host": "?"})
    assert "gpu.driver" in {each.key for each in manifest_differences(RUN, damaged)}


def test_the_batch_size_of_the_last_start_of_a_sweep_is_no_difference() -> None:
    def sweep(batch: int) -> RunHeader:
        stages = tuple(StageConfig(request_rate=8.0, max_num_seqs=size) for size in (4, 16))
        argv = ["vllm", "serve", "llama", "--max-num-seqs", str(batch), "--dtype", "half"]
        header = with_manifest("engine.argv", argv)
        return replace(header, config=replace(header.config, stages=stages))

    assert found(sweep(4), sweep(16)) == []
