"""The command of each load generator asks for the load, and sends the prompts it is given."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.judgement import client_commands
from tests.judgement.client_commands import CLIENTS, INPUT, OUTPUT, LeftOutError, Load, loads

OPEN, CLOSED = loads(10.0)
PEERS = [name for name in CLIENTS if name != "servetop"]


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(client_commands, "_installed", lambda *_: tmp_path / "home")
    monkeypatch.setattr(client_commands, "_tokenizer", lambda: str(tmp_path / "tokenizer"))


def told(words: Sequence[str], folder: Path) -> str:
    """Return what a client is told, in its command and in its files."""
    return "\n".join([*words, *(each.read_text() for each in sorted(folder.iterdir()))])


def texts_in(text: str) -> list[str]:
    """Return each string of a file of JSON lines, in order."""
    found: list[str] = []

    def collect(value: object) -> None:
        if isinstance(value, str):
            found.append(value)
        elif isinstance(value, dict | list):
            for each in value.values() if isinstance(value, dict) else value:
                collect(each)

    for line in text.splitlines():
        collect(json.loads(line))
    return found


@pytest.mark.parametrize("name", CLIENTS)
@pytest.mark.parametrize("load", [OPEN, CLOSED], ids=["open", "closed"])
def test_a_command_has_the_load_and_the_place_of_its_result(name: str, load: Load, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    words, result = CLIENTS[name](load, folder)
    text = told(words, folder)
    assert folder in result.parents
    for number in (load.rate or load.concurrency, INPUT, OUTPUT):
        assert f"{number:g}" in text
    assert "{url}" in text or "SERVETOP_AUDIT_URL" in text
    assert name == "servetop" or "{model}" in text or "SERVETOP_AUDIT_MODEL" in text


@pytest.mark.parametrize("name", CLIENTS)
def test_given_prompts_are_in_the_file_that_a_client_reads(name: str, tmp_path: Path) -> None:
    folder, prompts = tmp_path / "run", ("the first prompt", "a second one")
    folder.mkdir()
    words, _ = CLIENTS[name](replace(CLOSED, prompts=prompts), folder)
    (file,) = folder.glob("prompts.json*")
    assert [text for text in texts_in(file.read_text()) if text in prompts] == list(prompts)
    assert str(file) in told(words, folder)


@pytest.mark.parametrize("name", PEERS)
def test_a_client_that_cannot_be_installed_is_left_out(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: str) -> Path:
        raise LeftOutError("it cannot be installed here")

    monkeypatch.setattr(client_commands, "_installed", refused)
    with pytest.raises(LeftOutError, match="cannot be installed"):
        CLIENTS[name](OPEN, tmp_path)
