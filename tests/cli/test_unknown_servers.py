"""The whole command against servers of unknown engine that accept some requests only."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from servetop.recordings.read.reader import RecordingReader
from tests.harness import RAN, Finished, Servetop
from tests.odd_server import NOT_FOUND, Asked, OddServer, Reply, completed, odd_server, refused

pytestmark = pytest.mark.integration

BRIEF = ("--num-prompts", "3", "--request-rate", "inf", "--input-len", "8", "--output-len", "5", "--headless", "--json")


def chat_only(asked: Asked) -> Reply:
    return completed(asked) if "chat" in asked.path else NOT_FOUND


def without_ids(asked: Asked) -> Reply:
    if isinstance(asked.body.get("prompt"), list):
        return refused("prompt must be a string", 422)
    return refused("ignore_eos: unknown field") if "ignore_eos" in asked.body else completed(asked)


def load(servetop: Servetop, server: OddServer, *words: str) -> Finished:
    return servetop("--url", server.url, *BRIEF, *words)


def notes_of(servetop: Servetop) -> list[str]:
    """The warnings about the engine in the only recording."""
    (recording,) = servetop.folder.glob("*.servetop")
    with contextlib.closing(RecordingReader.open(Path(recording))) as reader:
        return [note.text for note in reader.poll().notes if note.source == "engine"]


@pytest.mark.parametrize("engine", [(), ("--engine", "openai")])
def test_a_server_that_only_chats_is_loaded_with_chats(servetop: Servetop, engine: tuple[str, ...]) -> None:
    with odd_server(chat_only) as server:
        done = load(servetop, server, *engine)
        assert done.code in RAN, done.err
        assert done.summary["completed"] == 3
        assert server.paths == ["/v1/completions", *4 * ["/v1/chat/completions"]]
    (remark,) = notes_of(servetop)
    assert remark.startswith("requests go to /v1/chat/completions: ")
    (recording,) = servetop.folder.glob("*.servetop")
    with contextlib.closing(RecordingReader.open(recording)) as reader:
        assert reader.header.engine is not None
        assert reader.header.engine.endpoints == ("chat", "completions", "responses")


def test_prompts_are_text_and_fields_left_out_as_the_server_wants_it(servetop: Servetop) -> None:
    with odd_server(without_ids) as server:
        done = load(servetop, server)
        assert done.code in RAN, done.err
        assert done.summary["completed"] == 3
        bodies = [asked.body for asked in server.asked[-3:]]
    assert {type(body["prompt"]) for body in bodies} == {str}
    assert not any("ignore_eos" in body for body in bodies)


def test_an_endpoint_of_the_user_is_not_overruled(servetop: Servetop) -> None:
    with odd_server(chat_only) as server:
        done = load(servetop, server, "--endpoint", "completions")
        assert done.code not in RAN
        assert server.paths == 3 * ["/v1/completions"]
