"""What prevents a repetition of a run, with what to do about it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from servetop.analysis.manifest.manifest_diff import manifest_differences
from servetop.core.clock import ClockAnchor
from servetop.core.config import EngineConfig, RunConfig
from servetop.core.interfaces.run_source import EngineFacts, RunHeader
from servetop.run.manifest.rerun_check import listed, obstacles

FILES = {"config.json": {"size": 1, "sha256": "ab"}}
FACTS = EngineFacts(name="vllm", title="vLLM", version="0.10.1", model="m")
RUN = RunHeader(
    config=RunConfig(engine=EngineConfig(name="vllm", model="m")),
    anchor=ClockAnchor(origin_ns=0, wall_epoch_s=1.7e9),
    versions={"servetop": "0.1"},
    host={"name": "a", "processors": 8},
    engine=FACTS,
    manifest={
        "engine": {"argv": ["vllm", "serve"], "environment": {"VLLM_USE_V1": "1", "VLLM_API_KEY": "[redacted]"}},
        "gpu": {"driver": "550", "devices": [{"name": "H100"}]},
        "model": {"config": FILES, "tokenizer": FILES, "weights": FILES},
        "host": {"cpu": "EPYC"},
    },
)


def with_part(name: str, value: Any) -> RunHeader:
    return replace(RUN, manifest={**RUN.manifest, name: value})


def with_environment(**variables: str) -> RunHeader:
    return with_part("engine", {"argv": ["vllm", "serve"], "environment": variables})


def texts(here: RunHeader, *given: str) -> list[str]:
    return [each.text for each in obstacles(RUN, here, given=given)]


@pytest.mark.parametrize(
    ("here", "text"),
    [
        (
            replace(RUN, engine=replace(FACTS, version="0.11.0")),
            "engine.version is 0.11.0 here, was 0.10.1: install that version, or name its environment with "
            "--engine-command",
        ),
        (
            with_environment(VLLM_USE_V1="0", VLLM_API_KEY="[redacted]"),
            "VLLM_USE_V1 is 0, was 1: set it to that",
        ),
        (with_environment(VLLM_USE_V1="1"), "VLLM_API_KEY was [redacted] and is not set: export it"),
        (
            with_environment(VLLM_USE_V1="1", VLLM_API_KEY="[redacted]", OMP_NUM_THREADS="3"),
            "OMP_NUM_THREADS is 3, was not set: unset it",
        ),
        (with_part("gpu", {}), "gpu is not known here, was recorded: use such a GPU with such settings"),
        (
            with_part("gpu", {"driver": "560", "devices": [{"name": "H100"}]}),
            "gpu.driver is 560 here, was 550: use such a GPU with such settings",
        ),
        (
            replace(RUN, engine=replace(FACTS, name="sglang")),
            "engine.name is sglang here, was vllm: start the recorded engine there",
        ),
        (with_part("host", {"cpu": "Xeon"}), "host.cpu is Xeon here, was EPYC: use such a machine"),
        (
            with_part("model", {}),
            "the files of the model are not on this machine: get the recorded files, or give another --model",
        ),
    ],
)  # fmt: skip
def test_each_difference_that_matters_is_one_line(here: RunHeader, text: str) -> None:
    assert texts(here) == [text]


def test_other_machines_names_secret_variables_and_servetops_own_version_do_not_matter() -> None:
    here = with_environment(VLLM_USE_V1="1", VLLM_API_KEY="[redacted]", RAY_API_KEY="[redacted]")
    assert texts(replace(here, host={"name": "b", "processors": 8}, versions={"servetop": "0.2"})) == []


def test_what_an_option_changes_on_purpose_does_not_matter() -> None:
    other = with_part("model", {name: {"config.json": {"size": 2}} for name in ("config", "tokenizer", "weights")})
    assert len(texts(other)) == 3
    assert texts(other, "model", "seed") == []
    newer = replace(RUN, engine=replace(FACTS, version="0.11"))
    assert texts(newer, "engine_command") == []


def test_what_an_older_recording_does_not_know_does_not_matter() -> None:
    assert list(obstacles(replace(RUN, manifest={}), RUN, given=())) == []


def test_an_attached_server_must_serve_the_recorded_model() -> None:
    attached = replace(
        RUN, config=RunConfig(engine=EngineConfig(name="auto", model="", url="http://gpu7:1")), manifest={}
    )
    other = replace(attached, engine=replace(FACTS, model="other"))
    (found,) = obstacles(attached, other, given=())
    assert found.text == "model.name is other here, was m: serve the recorded model, or give another --model"


def test_differences_are_listed_in_columns() -> None:
    lines = listed(manifest_differences(replace(RUN, manifest={}), with_part("host", {"cpu": "Xeon"})))
    assert lines[0] == "model.config        ? → " + lines[0].partition("→ ")[2]
    assert "host.cpu            ? → Xeon" in lines
