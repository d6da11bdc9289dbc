"""Prompts of logs are texts, messages, or token ids."""

import json

import pytest

from servetop.workload.shape.prompt_text import prompt_parts

SYSTEM = {"role": "system", "content": "Be brief."}
ASKED = {"role": "user", "content": [{"type": "text", "text": "Why?"}, {"type": "text", "text": "How?"}]}
ANSWER = {"role": "assistant", "content": "So.", "tool_calls": [{"id": "1", "function": {"name": "f"}}]}


def text_of(value: object) -> str:
    text, ids = prompt_parts(value)
    assert ids == ()
    return text or ""


def test_a_later_turn_extends_an_earlier_one() -> None:
    first, second = text_of([SYSTEM, ASKED]), text_of([SYSTEM, ASKED, ANSWER, {"role": "user", "content": "And?"}])
    assert second.startswith(first)
    assert all(part in second for part in ("Be brief.", "Why?", "How?", "So.", "And?", '"name": "f"'))


def test_messages_as_a_json_text_are_messages() -> None:
    assert text_of(json.dumps([SYSTEM, ASKED])) == text_of([SYSTEM, ASKED])


def test_token_ids_are_kept_as_such() -> None:
    assert prompt_parts([5, 6, 7]) == (None, (5, 6, 7))


@pytest.mark.parametrize("value", [None, "", [], {}, 7, [[]]])
def test_a_missing_prompt_has_no_text(value: object) -> None:
    assert text_of(value).strip() == ""


@pytest.mark.parametrize("text", ["[ not JSON", "[{", "plain"])
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert text_of(text) == text
