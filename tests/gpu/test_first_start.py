"""vLLM's first start on a card, which compiles: a command of its own where commands may last ten minutes only."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.gpu.conftest import TIME_LIMIT
from tests.harness import RAN, Finished

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(TIME_LIMIT + 30)]


def test_vllm_starts_answers_and_stops(serve: Callable[..., Finished]) -> None:
    done = serve("first", "--num-prompts", "8", "--request-rate", "2", "--input-len", "32", "--output-len", "16")
    assert done.code in RAN, done.err
    assert done.summary["completed"] == 8
