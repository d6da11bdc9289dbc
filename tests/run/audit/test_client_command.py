"""A client's command takes the simulator's address, and is refused without it."""

from __future__ import annotations

import pytest

from servetop.core.errors import UsageError
from servetop.run.audit.client_command import ClientAddress, check_command

ADDRESS = ClientAddress(url="http://127.0.0.1:4711", model="opt-125m")


def test_places_are_filled_in_and_other_braces_stay() -> None:
    words = ["bench", "--base-url={url}/v1", "--host", "{host}", "{host}:{port}", "--model", "{model}", '{"n": {}}']
    assert ADDRESS.filled_in(words) == (
        "bench", "--base-url=http://127.0.0.1:4711/v1", "--host", "127.0.0.1", "127.0.0.1:4711", "--model", "opt-125m",
        '{"n": {}}',
    )  # fmt: skip


def test_the_environment_has_the_same_values() -> None:
    assert ADDRESS.environment() == {
        "SERVETOP_AUDIT_URL": "http://127.0.0.1:4711",
        "SERVETOP_AUDIT_HOST": "127.0.0.1",
        "SERVETOP_AUDIT_PORT": "4711",
        "SERVETOP_AUDIT_MODEL": "opt-125m",
    }


@pytest.mark.parametrize("word", ["{url}", "--port={port}", "{host}", "load $SERVETOP_AUDIT_URL"])
def test_a_command_with_the_address_is_accepted(word: str) -> None:
    check_command(["sh", "-c", word])


@pytest.mark.parametrize("words", [[], ["vllm", "bench", "serve", "--model", "{model}"]])
def test_a_command_without_it_is_refused(words: list[str]) -> None:
    with pytest.raises(UsageError, match=r"\{url\}"):
        check_command(words)
