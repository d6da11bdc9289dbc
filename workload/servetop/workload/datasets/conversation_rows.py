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
"""Columns that may hold the conversation when `--dataset-column` is not given."""
_SPEAKERS = {
    "system": "system", "user": "user", "human": "user", "assistant": "assistant", "gpt": "assistant",
    "chatgpt": "assistant", "bing": "assistant", "bard": "assistant",
}  # fmt: skip
"""Roles by their names in OpenAI's and ShareGPT's formats."""
_FORM = "a list of questions or messages"


def turns_values(path: Path) -> Iterator[tuple[int, object]]:
    """The items of a file with a JSON array or JSON Lines."""
    with opened(path) as file:
        start = file.read(1)
        while start.isspace():
            start = file.read(1)
    return conversation_values(path) if start == "[" else json_line_values(path)


def turns_row(line: int, item: object, *, column: str = "") -> DatasetRow:
    """All questions of a conversation, with the lengths of their answers where present; BadRow without a question."""
    values: Mapping[str, object] = item if isinstance(item, dict) else {}
    name = column or next((each for each in COLUMNS if each in values), COLUMNS[0])
    messages = values.get(name)
    if not isinstance(messages, list) or not messages:
        raise BadRow(name, _FORM, messages if values else item)
    system, turns = "", list[Turn]()
    for role, text in (_message(name, each) for each in messages):
        if role == "system":
            system = system or text
        elif role == "user":
            if not text.strip():
                raise BadRow(name, "a question", text)
            turns.append(Turn(text))
        elif turns and turns[-1].output_tokens is None:  # a message before the first question is not an answer
            turns[-1] = Turn(turns[-1].question, estimated_tokens(text))
    if not turns:
        raise BadRow(name, "a question of a user", messages)
    return DatasetRow(line=line, text=system, turns=tuple(turns))


def _message(column: str, message: object) -> tuple[str, str]:
    """Role and text of a message; a plain string is a question."""
    if isinstance(message, str):
        return "user", message
    if not isinstance(message, dict):
        raise BadRow(column, _FORM, message)
    speaker = message.get("role", message.get("from"))
    role = _SPEAKERS.get(speaker) if isinstance(speaker, str) else None
    if role is None:
        raise BadRow(column, "messages of user, assistant or system", speaker)
    text = message.get("content", message.get("value"))
    if not isinstance(text, str):
        raise BadRow(column, f"the text of the {role}", text)
    return role, text
