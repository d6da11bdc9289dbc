"""The proxy counts what it passes on, however the bytes arrive."""

from __future__ import annotations

import http.client
import urllib.request
from pathlib import Path

import pytest

from tests.chaos.case import Case
from tests.chaos.engines import proxied
from tests.chaos.ledger import What
from tests.chaos.place import Place
from tests.chaos.processes import until
from tests.chaos.proxy import Answer

STREAM = (
    b'data: {"choices":[{"text":"a"}]}\n\n'
    b'data: {"choices":[{"delta":{"content":"b"}}]}\n\n'
    b": ping\n\n"
    b'data: {"choices":[{"text":""}]}\n\n'
)
USAGE = b'data: {"choices":[],"usage":{"completion_tokens":7}}\n\n'
CUT = (What.BROKEN, What.NO_ANSWER, What.ODD)
"""In the middle, before its first byte, behind its end."""
BODY = b'{"stream": true, "max_tokens": 5, "prompt": [1, 2, 3]}'


@pytest.mark.parametrize(("stream", "tokens"), [(STREAM, 2), (STREAM + USAGE, 7)])
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_tokens_are_those_of_the_usage_or_the_events_with_a_text(stream: bytes, tokens: int, size: int) -> None:
    answer = Answer()
    data = stream + b"data: [DONE]\n\n"
    for at in range(0, len(data), size):
        answer.read(data[at : at + size])
    assert (answer.tokens, answer.done) == (tokens, True)


@pytest.mark.parametrize(
    ("stream", "finished"),
    [
        (b"", False),
        (STREAM, False),
        (b'data: {"choices":[{"finish_reason":"length"}]}\n', True),
        (b"data: [DONE]\n", True),
    ],
)
def test_an_answer_is_finished_when_it_says_why(stream: bytes, finished: bool) -> None:
    answer = Answer()
    answer.read(stream)
    assert answer.finished is finished


def post(url: str) -> bytes:
    with urllib.request.urlopen(urllib.request.Request(f"{url}/v1/completions", data=BODY), timeout=60) as answer:
        body: bytes = answer.read()
        return body


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(Case("test", 0, 0), tmp_path)


def engine_of(tmp_path: Path) -> Place:
    """A place with a ledger of its own for the server behind the proxy."""
    (tmp_path / "engine").mkdir()
    return Place(Case("engine", 0, 0), tmp_path / "engine")


def test_an_answer_that_is_passed_on_whole_counts_as_answered(place: Place, tmp_path: Path) -> None:
    with engine_of(tmp_path).server() as url, proxied(place, int(url.rpartition(":")[2]), cut=0.0) as before:
        assert post(before).count(b"data: {") == 5
        until(lambda: place.ledger.count(What.ANSWERED), seconds=60.0)
    assert [(each.what, each.tokens) for each in place.ledger.entries[1:]] == [(What.RECEIVED, 0), (What.ANSWERED, 5)]


def test_an_answer_that_is_cut_off_never_counts_as_answered(place: Place, tmp_path: Path) -> None:
    with engine_of(tmp_path).server() as url, proxied(place, int(url.rpartition(":")[2]), cut=1.0) as before:
        for _ in range(6):
            with pytest.raises((OSError, http.client.HTTPException)):
                post(before)
        until(lambda: place.ledger.count(*CUT) == 6, seconds=60.0)
    outcomes = {each.what for each in place.ledger.entries[1:]} - {What.RECEIVED}
    assert outcomes <= set(CUT)
    assert place.ledger.count(*CUT) == place.ledger.count(What.RECEIVED) == 6


def test_an_engine_that_is_gone_counts_as_unheard(place: Place, tmp_path: Path) -> None:
    with engine_of(tmp_path).server() as url:
        port = int(url.rpartition(":")[2])
    with proxied(place, port, cut=0.0) as before:
        with pytest.raises((OSError, http.client.HTTPException)):
            post(before)
        until(lambda: place.ledger.count(What.NO_ANSWER), seconds=60.0)
    assert [each.what for each in place.ledger.entries[1:]] == [What.RECEIVED, What.NO_ANSWER]
