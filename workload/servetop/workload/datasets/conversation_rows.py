"""Conversations of a dataset: MT-bench's `turns`, OpenAI's `messages`, ShareGPT's `conversations`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from servetop.workload.datasets.messages import ASSISTANT, SYSTEM, TOOL, message_of
from servetop.workload.datasets.rows import BadRow, DatasetRow, LeftOut, MalformedRow, MissingColumn, Turn
from servetop.workload.token_estimate import estimated_tokens

MTBENCH = "mtbench.jsonl.gz"
COLUMNS = ("messages", "turns", "conversations", "conversation")
"""Columns that may hold the conversation when `--dataset-column` is not given."""
SEPARATOR = "\n\n"
"""Between the results of tools that were called at once."""


def turns_row(line: int, item: object, *, column: str = "") -> DatasetRow:
    """Return all questions of a conversation, with the lengths of their answers where present.

    The results of tools count as questions, because the model answers them. BadRow for anything but
    messages; LeftOut for a conversation without a question.
    """
    if not isinstance(item, dict):
        raise MalformedRow(f"expected an object with a conversation, found {str(item)[:40]!r}")
    name = next((each for each in ([column] if column else COLUMNS) if each in item), "")
    if not name:
        raise MissingColumn(column or " or ".join(COLUMNS[:3]), item, chosen=True)
    messages = item[name]
    if not isinstance(messages, list):
        raise BadRow(name, "a list of questions or messages", messages)
    system, turns = _script(name, (message_of(name, each) for each in (*_system_column(item), *messages)))
    if not turns:
        raise LeftOut("a conversation without a question")
    return DatasetRow(line=line, text=system, turns=tuple(turns))


def _system_column(item: Mapping[str, object]) -> list[Mapping[str, object]]:
    """The system prompt of a column of its own, as in Anthropic's requests and LLaMA-Factory's files, as a message."""
    content = item.get("system")
    return [{"role": SYSTEM, "content": content}] if content and isinstance(content, str | list) else []


def _script(column: str, messages: Iterable[tuple[str, str]]) -> tuple[str, list[Turn]]:
    """Return the system prompt and the questions; tools without a result add nothing."""
    system, turns, before = "", list[Turn](), ""
    for role, text in messages:
        if role == SYSTEM:
            system = f"{system}{SEPARATOR}{text}" if system else text
        elif role == ASSISTANT:
            if turns and turns[-1].output_tokens is None:  # a message before the first question is not an answer
                turns[-1] = Turn(turns[-1].question, estimated_tokens(text))
        elif role == TOOL == before and turns:
            turns[-1] = Turn(f"{turns[-1].question}{SEPARATOR}{text}")
        elif text.strip():
            turns.append(Turn(text))
        elif role != TOOL:
            raise BadRow(column, "a question", text)
        before = role
    return system, turns
