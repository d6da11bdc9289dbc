"""A watch of a real vLLM under the load of vLLM's own client."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.harness import Vllm
from tests.integration.vllm_bench import OUTPUT, watch

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

REQUESTS = 96


def test_the_load_of_another_client_on_vllm_is_counted_to_the_token(
    vllm: Vllm, scarce_vllm: str, tmp_path: Path
) -> None:
    load = watch(vllm, scarce_vllm, tmp_path, requests=REQUESTS)
    assert load.watched == load.counted
    assert load.client["completed"] == load.summary["watched"]["requests"] == REQUESTS
    assert load.counted["generation_tokens"] == load.client["total_output_tokens"] == REQUESTS * OUTPUT
    assert load.counted["prompt_tokens"] == load.client["total_input_tokens"]
    assert load.summary["backend"] == "vllm"
    assert load.output.startswith("{")
