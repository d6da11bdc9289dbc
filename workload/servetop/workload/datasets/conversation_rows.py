"""Conversations of a dataset: MT-bench's `turns`, OpenAI's `messages`, ShareGPT's `conversations`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from servetop.workload.datasets.files import opened
from servetop.workload.datasets.rows import BadRow, DatasetRow, Turn
from servetop.workload.datasets.texts import conversation_values, json_line_values
from servetop.workload.prompts.token_estimate import estimated_tokens

MTBENCH = "mtbench.jsonl.gz"
COLUMNS = ("messages", "turns", "conversations", "conversation")
"""Where a row may hold its conversation, where no column is named."""
_SPEAKERS = {
    "system": "system", "user": "user", "human": "user", "assistant": "assistant", "gpt": "assistant",
    "chatgpt": "assistant", "bing": "assistant", "bard": "assistant",
}  # fmt: skip
"""Roles as OpenAI and ShareGPT name them."""
_FORM = "a list of questions or messages"


def turns_values(path: Path) -> Iterator[tuple[int, object]]:
    """The items of a JSON array, or of JSON lines, whichever the file holds."""
    with opened(path) as file:
        start = file.read(1)
        while start.isspace():
            start = file.read(1)
    return conversation_values(path) if start == "[" else json_line_values(path)


def turns_row(line: int, item: object, *, column: str = "") -> DatasetRow:
    """All questions of a conversation, and how long their answers were where it holds them; BadRow without any."""
    values: Mapping[str, object] = item if isinstance(item, dict) else {}
    name = column or next((each for each in COLUMNS if each in values), COLUMNS[0])
    said = values.get(name)
    if not isinstance(said, list) or not said:
        raise BadRow(name, _FORM, said if values else item)
    system, turns = "", list[Turn]()
    for role, text in (_message(name, each) for each in said):
        if role == "system":
            system = system or text
        elif role == "user":
            if not text.strip():
                raise BadRow(name, "a question", text)
            turns.append(Turn(text))
        elif turns and turns[-1].output_tokens is None:  # what was said before the first question is no answer
            turns[-1] = Turn(turns[-1].question, estimated_tokens(text))
    if not turns:
        raise BadRow(name, "a question of a user", said)
    return DatasetRow(line=line, text=system, turns=tuple(turns))


def _message(column: str, said: object) -> tuple[str, str]:
    """Role and text; a plain text is a question."""
    if isinstance(said, str):
        return "user", said
    if not isinstance(said, dict):
        raise BadRow(column, _FORM, said)
    speaker = said.get("role", said.get("from"))
    role = _SPEAKERS.get(speaker) if isinstance(speaker, str) else None
    if role is None:
        raise BadRow(column, "messages of user, assistant or system", speaker)
    text = said.get("content", said.get("value"))
    if not isinstance(text, str):
        raise BadRow(column, f"the text of the {role}", text)
    return role, text
