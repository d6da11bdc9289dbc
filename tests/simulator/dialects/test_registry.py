"""A dialect has a default profile and policy, which options override."""

from __future__ import annotations

import httpx
import pytest

from servetop.cli.options.declaration import Option, declared
from servetop.cli.options.serve_options import ServeOptions
from servetop.simulator.dialects.registry import server_dialect_class
from servetop.simulator.model.profile_files import load_engine
from tests.simulator.server_process import serve, start, stop


def test_every_dialect_has_a_profile_and_its_engines_policy() -> None:
    (dialect,) = (each.form for each in declared(ServeOptions) if each.name == "dialect")
    assert isinstance(dialect, Option)
    policies = {name: load_engine(server_dialect_class(name).profile).policy for name in dialect.choices}
    assert policies == {
        "vllm": "recompute",
        "tgi": "reserve",
        "trtllm": "inflight",
        "llama.cpp": "splitfuse",
        "triton": "inflight-reserve",
        "sglang": "chunked",
        "mii": "splitfuse",
        "transformers": "chunked",
    }


def test_profile_and_policy_of_a_dialect_can_be_overridden() -> None:
    options = ("--dialect", "trtllm", "--engine-profile", "vllm-0.2.1", "--policy", "swap", "--model", "opt-125m")
    process, url = start(*options, "--kv-blocks", "777")
    with httpx.Client(base_url=url) as client:
        client.post("/v1/completions", json={"prompt": "x", "max_tokens": 2, "ignore_eos": True})
        (first, _) = client.get("/metrics").json()
    assert (first["kvCacheStats"]["tokensPerBlock"], first["kvCacheStats"]["maxNumBlocks"]) == (16, 777)
    assert stop(process) == 0


def test_an_unknown_dialect_exits_with_2_and_the_known_names(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert serve("--dialect", "orca") == 2
    assert "llama.cpp" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--no-metrics"], "--no-metrics is for --dialect sglang and llama.cpp: leave it out with vllm"),
        (["--metrics-port", "9"], "--metrics-port is for --dialect triton"),
        (["--max-concurrent-requests", "9"], "--max-concurrent-requests is for --dialect tgi"),
        (["--enable-per-request-metrics", "--dialect", "tgi"], "leave it out with tgi"),
        (
            ["--served-model-name", "m", "--dialect", "triton"],
            "the models of --dialect triton are ensemble and tensorrt_llm: leave out --served-model-name",
        ),
        (["--lora-modules", "a=b", "--dialect", "triton"], "leave out --lora-modules"),
    ],
)
def test_an_option_that_does_not_change_the_dialect_is_refused(
    words: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert serve(*words) == 2
    assert complaint in capsys.readouterr().err
