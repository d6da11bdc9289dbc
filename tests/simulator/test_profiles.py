"""Profiles are data with sources; models that do not fit or exist are reported in one line."""

from __future__ import annotations

import dataclasses
import tomllib
from pathlib import Path

import pytest

from servetop.core.errors import UsageError
from servetop.simulator.model import profiles
from servetop.simulator.model.profile_files import load_engine, load_gpu, load_model, profile_names
from servetop.simulator.model.settings import setting_names
from servetop.simulator.policies.policy import PolicyParameters, make_policy
from servetop.simulator.scheduling.build import block_count, build_scheduler, sim_spec

FOLDER = Path(profiles.__file__).parents[1] / "profiles"
PARAMETERS = PolicyParameters(watermark=0.01, decode_slack=0, batch_timeout=0.1, max_model_len=4096)
FILES = sorted(FOLDER.glob("*/*.toml"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_number_of_a_profile_has_a_source(path: Path) -> None:
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    numbers = {key for key, value in data.items() if isinstance(value, int | float)}
    assert numbers <= set(data["sources"])


def test_every_shipped_profile_loads() -> None:
    for name in profile_names("gpus"):
        assert load_gpu(name).bandwidth > 1e11
    for name in profile_names("models"):
        model = load_model(name)
        assert model.gemm_parameters <= model.parameters
        assert model.heads * model.head_dim == model.hidden
        assert load_model(model.hub_name) == model
    for name in profile_names("engines"):
        policy = load_engine(name).policy
        assert make_policy(policy, PARAMETERS).name == policy


def test_the_required_gpu_model_and_engine_profiles_exist() -> None:
    assert {"v100-16", "a10g", "a100-40", "a100-80", "rtx6000", "h100", "h200", "l4"} <= set(profile_names("gpus"))
    models = {"opt-125m", "opt-1.3b", "opt-6.7b", "opt-13b", "llama-2-7b", "llama-2-13b", "llama-2-70b"}
    models |= {"llama-3-8b", "llama-3-70b", "galactica-1.3b", "mistral-7b", "qwen2.5-7b"}
    assert models <= set(profile_names("models"))
    engines = {"vllm-0.2.1", "vllm-0.6", "vllm-current", "tensorrt-llm-2024", "tgi-2024"}
    assert engines <= set(profile_names("engines"))


@pytest.mark.parametrize(("model", "blocks"), [("llama-2-7b", 2883), ("llama-2-13b", 879)])
def test_the_number_of_kv_blocks_matches_the_published_tables(model: str, blocks: int) -> None:
    assert block_count(sim_spec(model, gpu="a100-40", engine="vllm-0.2.1")) == blocks


@pytest.mark.parametrize(
    ("model", "gpu", "expected"),
    [
        ("llama-2-70b", "a100-40", "needs 138 GB for weights; A100-40GB has 39.4 GiB: try tensor_parallel=4"),
        ("llama-2-70b", "l4", "needs 138 GB for weights; L4 has 22.0 GiB: try tensor_parallel=8"),
        ("llama-2-13b", "v100-16", "try tensor_parallel=2"),
        ("llama-3-70b", "v100-16", "try a larger GPU or a smaller model"),
        ("llama-2-7b", "v100-16", "leaves KV blocks for"),
    ],
)
def test_a_model_that_does_not_fit_is_rejected_with_the_missing_memory(model: str, gpu: str, expected: str) -> None:
    with pytest.raises(UsageError, match=expected.replace("(", r"\(")):
        build_scheduler(sim_spec(model, gpu=gpu, engine="vllm-0.2.1"))


def test_tensor_parallelism_makes_a_model_fit() -> None:
    spec = sim_spec("llama-2-70b", gpu="a100-40", engine="vllm-0.2.1", settings={"tensor_parallel": 8})
    assert block_count(spec) > 1000


def test_user_profiles_are_found_and_their_errors_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gpus").mkdir()
    own = (FOLDER / "gpus" / "l4.toml").read_text(encoding="utf-8").replace('name = "L4"', 'name = "mine"')
    (tmp_path / "gpus" / "mine.toml").write_text(own)
    (tmp_path / "gpus" / "typo.toml").write_text(own.replace("bandwidth = 300e9", "bandwith = 300e9", 1))
    (tmp_path / "gpus" / "short.toml").write_text(own.replace("flops = 121e12", "", 1))
    (tmp_path / "gpus" / "broken.toml").write_text("name = ")
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "broken.toml").write_text("name = ")
    monkeypatch.setenv("SERVETOP_PROFILES", str(tmp_path))
    assert load_model("meta-llama/Llama-2-7b-hf").name == "Llama-2-7b"
    assert load_model("./models/llama-2-7b").name == "Llama-2-7b"
    assert load_gpu("mine").name == "mine"
    with pytest.raises(UsageError, match=r"typo.toml: unknown key 'bandwith': did you mean 'bandwidth'\?"):
        load_gpu("typo")
    with pytest.raises(UsageError, match=r"short.toml: missing .*'flops'"):
        load_gpu("short")
    with pytest.raises(UsageError, match=r"broken.toml: not a readable TOML file"):
        load_gpu(str(tmp_path / "gpus" / "broken.toml"))


def test_any_number_can_be_set_by_name() -> None:
    keys = {"kv_blocks": "500", "watermark": "0.05", "block_size": "32", "c0": "1e-3", "c1": "2e-4", "tile": "64"}
    keys |= {"gpu.bandwidth": "1e12", "gpu.flops": "2e14", "policy": "swap", "max_num_batched_tokens": "999"}
    spec = sim_spec("llama-2-7b", gpu="a100-40", engine="vllm-0.2.1", settings=keys | {"time_scale": "2"})
    assert (spec.kv_blocks, spec.time_scale, spec.batched_tokens) == (500, 2.0, 999)
    assert (spec.gpu.bandwidth, spec.gpu.flops, spec.gpu.tile) == (1e12, 2e14, 64)
    engine = dataclasses.asdict(spec.engine)
    assert (engine["watermark"], engine["c1"], engine["policy"]) == (0.05, 2e-4, "swap")
    assert set(keys) - {"tile"} <= set(setting_names())


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("kv_block", "5", "no setting 'kv_block': did you mean 'kv_blocks'?"),
        ("gpu.bandwith", "5", "did you mean 'gpu.bandwidth'?"),
        ("kv_blocks", "many", "kv_blocks=many: expected"),
        ("block_size", "1.5", "block_size=1.5: expected int"),
        ("prefix_cache", "perhaps", "prefix_cache=perhaps: expected bool"),
    ],
)
def test_an_unknown_setting_is_rejected_with_the_closest_name(key: str, value: str, expected: str) -> None:
    with pytest.raises(UsageError) as error_info:
        sim_spec("llama-2-7b", gpu="a100-40", engine="vllm-0.2.1", settings={key: value})
    assert expected in str(error_info.value)


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("gpu.bandwidth", "0", "gpu.bandwidth must be above 0"),
        ("gpu.flops", "nan", "gpu.flops must be above 0"),
        ("time_scale", "inf", "time_scale must be above 0"),
        ("kv_blocks", "0", "kv_blocks must be above 0"),
        ("c1", "-1", "c1 must be at least 0"),
        ("watermark", "1", "watermark must be at least 0 and below 1"),
        ("memory_share", "half", "invalid memory_share 'half': use total or free"),
        ("model.layers", "0", "model.layers must be above 0"),
    ],
)
def test_an_invalid_value_is_rejected_before_anything_runs(key: str, value: str, expected: str) -> None:
    spec = sim_spec("llama-2-7b", gpu="a100-40", engine="vllm-0.2.1", settings={key: value})
    with pytest.raises(UsageError) as error_info:
        build_scheduler(spec)
    assert expected in str(error_info.value)
